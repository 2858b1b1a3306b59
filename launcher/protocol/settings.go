package protocol

import (
	"math"

	"github.com/podvisor/podvisor/vmi"
)

// MigrationSettingsOf are how a VMI moves with the configuration, whose fields that are not
// set limit and permit nothing. Nil: none is set. A bandwidth is in whole MiB per second, and never below one.
//
// No setting asks for several connections for the memory. With these, a migration that is aborted
// may never end in QEMU 10.0: its thread waits for one that has ended (multifd_send_sync_main).
func MigrationSettingsOf(c *vmi.MigrationConfiguration) MigrationSettings {
	if c == nil {
		c = &vmi.MigrationConfiguration{}
	}
	s := MigrationSettings{
		AutoConverge:    of(c.AllowAutoConverge),
		PostCopy:        of(c.AllowPostCopy),
		Disruption:      of(c.AllowWorkloadDisruption),
		SecondsPerGB:    of(c.CompletionTimeoutPerGiB),
		ProgressSeconds: of(c.ProgressTimeout),
		DowntimeMillis:  int64(min(of(c.MaxDowntimeMs), math.MaxInt32)),
	}
	if b := c.BandwidthPerMigration; b != nil && b.Sign() > 0 {
		s.MiBPerSecond = int(min(max(1, b.Value()>>20), math.MaxInt32))
	}
	return s
}

// of is the value, or its zero.
func of[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}
