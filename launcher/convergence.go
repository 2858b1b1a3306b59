package launcher

import (
	"fmt"
	"time"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// Convergence watches whether the sending of a guest comes to its end. It is a value: each
// look at the sending makes the next one.
type Convergence struct {
	// Settings are those of the migration.
	Settings protocol.MigrationSettings
	// Bytes are the memory of the guest and the disks that are copied.
	Bytes int64
	// Began is when the sending began.
	Began time.Time
	// Mode is how the memory is sent.
	Mode vmi.MigrationMode

	// Downtime is how long the guest may stand still while the rest is sent. 0: no look was
	// made yet, and it is [Convergence.First].
	Downtime time.Duration

	remaining  int64     // at the look before
	progressAt time.Time // when it became less; zero: there was no look yet
}

// ConvergenceEvery is the time between two looks at a sending.
const ConvergenceEvery = 400 * time.Millisecond

// firstDowntime is how long any guest may stand still, and defaultDowntime is the limit if the
// settings have none.
const (
	firstDowntime   = 20 * time.Millisecond
	defaultDowntime = 300 * time.Millisecond
)

// enoughPasses is how often the memory was sent when its rest is not small enough by itself.
const enoughPasses = 3

// most is the limit of Downtime.
func (c Convergence) most() time.Duration {
	if c.Settings.DowntimeMillis > 0 {
		return time.Duration(c.Settings.DowntimeMillis) * time.Millisecond
	}
	return defaultDowntime
}

// First is the Downtime that a sending begins with. QEMU pauses the guest as soon as it expects
// to send the rest in that time, so that a guest which changes little stands still only shortly.
func (c Convergence) First() time.Duration { return min(firstDowntime, c.most()) }

// decimalGB is the unit of [protocol.MigrationSettings.SecondsPerGB].
const decimalGB = 1_000_000_000

// limit is how long the sending may take. 0: as long as it takes. A guest that is paused for it
// has twice the time.
func (c Convergence) limit() time.Duration {
	seconds := c.Settings.SecondsPerGB * ((c.Bytes + decimalGB - 1) / decimalGB)
	if c.Mode == vmi.MigrationPaused {
		seconds *= 2
	}
	return time.Duration(seconds) * time.Second
}

// Look is the Convergence after a look at the sending, of which so many bytes are left, and of
// whose memory this is the pass of that number, from 1 on. Its Downtime is longer with each
// look from the third pass on, up to the limit of the settings. The caller makes the sending what the Mode of the result is, by post-copy or by pausing the
// guest, or aborts it for the reason abort, which is empty unless it is to be aborted. A
// post-copy is never aborted: no side has the whole guest.
func (c Convergence) Look(remaining, pass int64, now time.Time) (next Convergence, abort string) {
	if c.progressAt.IsZero() || remaining == 0 || remaining < c.remaining {
		c.progressAt = now
	}
	c.remaining = remaining
	c.Downtime = max(c.Downtime, c.First())
	if pass >= enoughPasses {
		c.Downtime = min(2*c.Downtime, c.most())
	}
	limit := c.limit()
	late := limit > 0 && now.Sub(c.Began) > limit
	most := time.Duration(c.Settings.ProgressSeconds) * time.Second
	switch {
	case c.Mode == vmi.MigrationPostCopy:
	case late && c.Settings.Disruption && c.Settings.PostCopy && c.Mode != vmi.MigrationPaused:
		c.Mode = vmi.MigrationPostCopy
	case late && c.Settings.Disruption && c.Mode != vmi.MigrationPaused:
		c.Mode = vmi.MigrationPaused
	case late:
		return c, fmt.Sprintf("the live migration has been aborted: it was not complete after %s", limit)
	case most > 0 && now.Sub(c.progressAt) > most:
		return c, fmt.Sprintf("the live migration has been aborted: the bytes that are left did not become fewer for %s", most)
	}
	return c, ""
}
