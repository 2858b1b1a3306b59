package supervisor

import (
	"context"
	"time"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/launcher"
)

// boots notes that the guest boots from now on, and what it has read of its disks
// before. A guest that is started by its kernel need not read any.
func (f *facts) boots(read int64, now time.Time) {
	if f.desired != nil && f.desired.Instance.Spec.Domain.BootContainer() != nil {
		return
	}
	f.boot, f.readBefore = launcher.Boot{Began: now}, read
}

// listens notes that what the guest writes is seen from now on, if it has a serial console
// that is logged.
func (f *facts) listens(now time.Time) {
	if f.desired == nil {
		return
	}
	d := f.desired.Instance.Spec.Domain.Devices
	for _, on := range []*bool{d.AutoattachSerialConsole, d.LogSerialConsole} {
		if on != nil && !*on {
			return
		}
	}
	f.output.Since = now
}

// wrote notes that the guest has written to its serial console.
func (s *Supervisor) wrote() { s.facts.change(func(f *facts) { f.output.Written = true }) }

// Resets of a guest within oneReboot are one reboot. SeaBIOS resets the guest two or three
// times until the chipset is what it was at first. Those within slowReboot are one too, on a
// node that is busy, unless the guest has read of its disks as one that has booted.
const (
	oneReboot  = time.Second
	slowReboot = 10 * time.Second
)

// rebooted counts a reboot of the guest, which is at least one reset.
func (s *Supervisor) rebooted() {
	now := time.Now()
	var since time.Duration
	s.facts.change(func(f *facts) {
		f.observed.Frozen = false // a freeze ends with the kernel that it was asked of
		if since = now.Sub(f.rebootedAt); since > slowReboot {
			f.reboots(now)
		}
	})
	if since <= oneReboot {
		return
	}
	s.work.Go(func() {
		read, err := s.blocksRead(s.inner)
		if err != nil {
			s.config.Logger.Debug("what the guest has read of its disks is not known", "err", err)
			return
		}
		counts := since > slowReboot
		s.facts.change(func(f *facts) {
			if !counts && read-f.readAtReboot >= launcher.BootedBytes {
				counts = true
				f.reboots(now)
			}
			if !counts {
				return
			}
			f.readAtReboot = read
			if now.After(f.boot.Began) && !f.boot.Began.IsZero() {
				f.boots(read, now)
			}
		})
		if counts {
			s.config.Logger.Info("the guest rebooted")
		}
	})
}

// reboots counts a reboot.
func (f *facts) reboots(now time.Time) {
	f.observed.Reboots++
	f.rebootedAt = now
}

// actMeasure finds out how much the guest has read of its disks.
func (s *Supervisor) actMeasure(ctx context.Context) {
	s.facts.change(func(f *facts) { f.boot.AskedAt = time.Now() })
	s.work.Go(func() {
		read, err := s.blocksRead(ctx)
		if err != nil {
			s.config.Logger.Debug("what the guest has read of its disks is not known", "err", err)
			return
		}
		s.facts.change(func(f *facts) { f.boot.Read, f.boot.MeasuredAt = read-f.readBefore, time.Now() })
	})
}

// blocksRead is how many bytes the guest has read of its disks since it was started.
func (s *Supervisor) blocksRead(ctx context.Context) (read int64, err error) {
	err = s.call(ctx, func(ctx context.Context, c *libvirt.Connection) error {
		read, err = c.BytesRead(ctx, s.domainName())
		return err
	})
	return read, err
}

// firmwareFailed notes what the firmware said on the serial console. The guest may
// write the same, as often as it likes: it changes nothing after the first time, and
// it means nothing for a guest that reads its disks.
func (s *Supervisor) firmwareFailed(failure string) {
	s.facts.mu.Lock()
	known := s.facts.boot.Failure != "" || s.facts.boot.Read >= launcher.BootedBytes
	s.facts.mu.Unlock()
	if !known {
		s.facts.change(func(f *facts) { f.boot.Failure = failure })
	}
}
