package supervisor

import (
	"context"
	"time"
)

// qemuEvery is the time between two looks whether QEMU is stopped by a signal, which is no
// event.
const qemuEvery = 5 * time.Second

// followQEMU looks again and again whether a signal has stopped QEMU, until ctx ends.
func (s *Supervisor) followQEMU(ctx context.Context) {
	tick := time.NewTicker(qemuEvery)
	defer tick.Stop()
	known := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		stopped, err := s.daemon.QEMUStopped(s.domainName())
		if err != nil {
			stopped = false // there is none
		}
		if stopped == known {
			continue
		}
		known = stopped
		s.config.Logger.Warn("a signal has stopped QEMU, or continued it", "stopped", stopped)
		s.facts.change(func(f *facts) { f.stopped = stopped })
	}
}
