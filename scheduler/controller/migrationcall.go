package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/migration"
	"github.com/podvisor/podvisor/vmi"
)

// Handlers reach the handlers of nodes, which move VMIs. Errors that are a [*vmi.Refusal] are
// of the handler or the launcher; others are of the way to it.
type Handlers interface {
	// Handler returns the hash of the certificate that the handler of the node presents, and
	// the address with the port that it listens on, in the network that migrations use. An
	// empty network is that of pods.
	Handler(ctx context.Context, node, network string) (certificate, address string, err error)
	// Call makes the call with the options about one of the VMI's pods, at the handler of the
	// node that status.activePods says. Empty: the pod that the VMI runs in.
	Call(ctx context.Context, v *vmi.VirtualMachineInstance, pod types.UID, call protocol.Call, options any) error
}

// Times that a call of a migration may take. A target is accepted when its launcher waits.
const (
	acceptTime = 20 * time.Second
	moveTime   = 10 * time.Second
)

// migrationCalls makes the calls of migrations to handlers, each in a goroutine of its own, so
// that no loop waits for a node. It is safe for concurrent use.
type migrationCalls struct {
	handlers Handlers // nil: none is reached
	// queue queues a migration whose call was answered.
	queue func(key string)
	now   func() time.Time
	runs  sync.WaitGroup

	mu    sync.Mutex
	known map[types.UID]*migration.Calls
}

func newMigrationCalls(h Handlers, queue func(string), now func() time.Time) *migrationCalls {
	return &migrationCalls{handlers: h, queue: queue, now: now, known: map[types.UID]*migration.Calls{}}
}

// of is what is known of the calls of the migration.
func (c *migrationCalls) of(uid types.UID) migration.Calls {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.known[uid]; k != nil {
		return *k
	}
	return migration.Calls{}
}

func (c *migrationCalls) forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, uid)
}

// wait returns when no call is being made.
func (c *migrationCalls) wait() { c.runs.Wait() }

// errNoHandlers is why no call is made.
var errNoHandlers = errors.New("virt-controller does not reach the handlers of nodes: it is configured without them")

// ask makes the call, unless it is being made, and notes the answer. It does not wait.
func (c *migrationCalls) ask(ctx context.Context, o vmi.Object, which func(*migration.Calls) *migration.Asked, most time.Duration, do func(context.Context) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.known[o.GetUID()]
	if k == nil {
		k = &migration.Calls{}
		c.known[o.GetUID()] = k
	}
	a := which(k)
	if a.Now {
		return
	}
	a.Now = true
	if a.Since.IsZero() {
		a.Since = c.now()
	}
	c.runs.Go(func() {
		err := errNoHandlers
		if c.handlers != nil {
			ctx, cancel := context.WithTimeout(ctx, most)
			err = do(ctx)
			cancel()
		}
		c.mu.Lock()
		a.Now, a.At, a.Refusal = false, c.now(), findingOf(err)
		c.mu.Unlock()
		c.queue(reconcile.Key(o))
	})
}

// findingOf is why a call was not done. Nil: it was.
func findingOf(err error) *vmi.Finding {
	var r *vmi.Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &r):
		return &r.Finding
	}
	return &vmi.Finding{Reason: vmi.RefusedUnavailable, Message: err.Error()}
}

// announce has the handler of the source announce the guest that the migration o is to move.
func (c *migrationCalls) announce(ctx context.Context, o vmi.Object, a scheduler.AnnounceGuest) {
	c.ask(ctx, o, func(k *migration.Calls) *migration.Asked { return &k.Announce }, moveTime, func(ctx context.Context) error {
		return c.handlers.Call(ctx, a.Instance, "", protocol.CallMigrationAnnounce, protocol.MigrationStep{UID: o.GetUID()})
	})
}

// accept has the handler of the target accept the migration o.
func (c *migrationCalls) accept(ctx context.Context, o vmi.Object, a scheduler.AcceptMigration) {
	c.ask(ctx, o, func(k *migration.Calls) *migration.Asked { return &k.Accept }, acceptTime, func(ctx context.Context) error {
		s := a.Instance.Status.MigrationState
		certificate, _, err := c.handlers.Handler(ctx, s.SourceNode, networkOf(s))
		if err != nil {
			return err
		}
		return c.handlers.Call(ctx, a.Instance, a.Pod, protocol.CallMigrationAccept, protocol.MigrationAccept{UID: o.GetUID(), Certificate: certificate})
	})
}

// start has the handler of the source begin the migration o, or go on with it.
func (c *migrationCalls) start(ctx context.Context, o vmi.Object, a scheduler.StartMigration) {
	to := a.Instance.Status.MigrationState.TargetNode
	if a.Over { // the handler of the target is not needed, and its node may be gone
		which := func(k *migration.Calls) *migration.Asked { return &k.Over }
		if a.Held {
			which = func(k *migration.Calls) *migration.Asked { return &k.Hold }
		}
		c.ask(ctx, o, which, moveTime, func(ctx context.Context) error {
			return c.handlers.Call(ctx, a.Instance, "", protocol.CallMigrationStart, protocol.MigrationStart{
				UID: o.GetUID(), Node: to, Pod: a.Pod, Settings: a.Settings, Over: true, Held: a.Held,
			})
		})
		return
	}
	c.ask(ctx, o, func(k *migration.Calls) *migration.Asked { return &k.Start }, moveTime, func(ctx context.Context) error {
		certificate, address, err := c.handlers.Handler(ctx, to, networkOf(a.Instance.Status.MigrationState))
		if err != nil {
			return err
		}
		return c.handlers.Call(ctx, a.Instance, "", protocol.CallMigrationStart, protocol.MigrationStart{
			UID: o.GetUID(), Node: to, Pod: a.Pod, Address: address, Certificate: certificate, Settings: a.Settings,
		})
	})
}

// networkOf is the network that the migration uses. Empty: that of pods.
func networkOf(s *vmi.MigrationState) string {
	if s.MigrationConfiguration == nil || s.MigrationConfiguration.Network == nil {
		return ""
	}
	return *s.MigrationConfiguration.Network
}

// abort has the handler of the source end the migration o.
func (c *migrationCalls) abort(ctx context.Context, o vmi.Object, a scheduler.AbortMigration) {
	c.ask(ctx, o, func(k *migration.Calls) *migration.Asked { return &k.Abort }, moveTime, func(ctx context.Context) error {
		return c.handlers.Call(ctx, a.Instance, "", protocol.CallMigrationAbort, protocol.MigrationStep{UID: o.GetUID()})
	})
}
