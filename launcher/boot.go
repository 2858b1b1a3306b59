package launcher

import (
	"fmt"
	"time"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// BootedBytes is how much a guest that boots has read of its disks at least. A
// firmware that finds nothing to boot reads a sector of each, and the smallest of
// boot loaders with a kernel read many times as much.
const BootedBytes = 64 << 10

// Boot is what is known of the guest's boot since the guest was started or rebooted
// last.
type Boot struct {
	// Began is when that was, or when the guest was resumed since. Zero: it was not
	// started.
	Began time.Time
	// Read is how many bytes the guest has read of its disks since it was started or
	// rebooted, as it was at MeasuredAt.
	Read int64
	// MeasuredAt is when Read was measured last. Zero: not since then.
	MeasuredAt time.Time
	// AskedAt is when Read was asked for last. Zero: not since then.
	AskedAt time.Time
	// Failure is what the firmware said on the serial console: that it has found
	// nothing to boot from. Empty: it did not say so.
	Failure string
}

// notBooted adds to a plan whether the guest seems not to have booted, and asks for
// what it has read when that is due. Nothing is asked of a guest that has booted, or
// one that does not run.
func (p *Plan) notBooted(d Desired, a Actual) {
	b := a.Boot
	if !a.Domain.exists() || d.stops() || b.Began.IsZero() || b.Read >= BootedBytes {
		return
	}
	next := b.Began.Add(BootDelay)
	if b.Failure != "" {
		next = b.Began
	}
	if !b.MeasuredAt.IsZero() && !b.MeasuredAt.Before(next) {
		p.State.NotBooted = notBooted(b.Failure)
	}
	if a.Domain != Running {
		return
	}
	if again := b.AskedAt.Add(bootAgain); !b.AskedAt.IsZero() && again.After(next) {
		next = again
	}
	if wait := next.Sub(a.Now); wait > 0 {
		p.recheck(wait)
		return
	}
	p.Actions = append(p.Actions, MeasureReads{})
	p.recheck(bootAgain)
}

func notBooted(failure string) *vmi.Finding {
	if failure != "" {
		return &vmi.Finding{Reason: protocol.ReasonNoBootableDevice, Message: fmt.Sprintf(
			"The firmware says on the serial console: %s: check that a disk has a system for this firmware, and the boot order", failure)}
	}
	return &vmi.Finding{Reason: protocol.ReasonNothingRead, Message: fmt.Sprintf(
		"The guest has run for %s and has read next to nothing of its disks: "+
			"either no disk has a system that the VMI's firmware (BIOS or UEFI) can boot, or its boot loader waits for a key", BootDelay)}
}
