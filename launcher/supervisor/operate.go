package supervisor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/podvisor/podvisor/launcher"
)

// operation is how a kind of operation is done.
type operation struct {
	kind launcher.OperationKind
	// do does it to the device, and returns how what is known of the domain changes by
	// that. It runs in the background.
	do func(*Supervisor, context.Context, launcher.Device) (known func(*facts), err error)
	// log is the message that an attempt is logged with, and what is logged of the device.
	log func(launcher.Device) (message string, args []any)
}

// operations are how all kinds of operations are done.
var operations = []operation{
	resizeDisk,
	setLink,
}

// operate begins an operation and notes what becomes of it.
func (s *Supervisor) operate(ctx context.Context, o launcher.Operation) error {
	for _, how := range operations {
		if how.kind != o.Kind {
			continue
		}
		s.facts.change(func(f *facts) { f.operations = f.operations.Begin(o) })
		s.work.Go(func() {
			known, err := how.do(s, ctx, o.Device)
			message, args := how.log(o.Device)
			s.config.Logger.Info(message, append(args, "err", err)...)
			s.facts.change(func(f *facts) { f.operated(o, known, err, time.Now()) })
		})
		return nil
	}
	return fmt.Errorf("execute %s: no such operation", o.Kind)
}

// operated notes that an attempt at an operation is over. What it changed is known with
// that, so that it is not due again.
func (f *facts) operated(o launcher.Operation, known func(*facts), err error, now time.Time) {
	f.operations = f.operations.End(o, err, now)
	if err == nil {
		known(f)
	}
}

// setDevice changes what is known of the device that has the alias.
func (f *facts) setDevice(alias string, change func(*launcher.Device)) {
	devices := slices.Clone(f.attached) // which the loop may read
	for i := range devices {
		if devices[i].Alias == alias {
			change(&devices[i])
		}
	}
	f.attached = devices
}
