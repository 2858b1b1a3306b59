package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// actionTimeout is how long an action may take, and bindTimeout how long the binding of a
// network may, which looks for a router of IPv6, and waits for the kernel's one lock of
// links as long as other pods of the node are made. No VMI but the launcher's own waits for
// either.
const (
	actionTimeout = handler.AnswerTimeout
	bindTimeout   = time.Minute
)

// act does what the plan says: the status first, which a launcher cannot delay, and
// then the actions, also if the status could not be written. But a final status
// comes before what follows from it: the launcher's reaction would be reported in
// its place. What waits for the launcher is handed to its session. The VMI is to be
// reconciled again after the returned time, if that is not zero.
func (c *Controller) act(ctx context.Context, key string, s *session, o handler.Observed, p handler.Plan, seen int) (time.Duration, error) {
	after := p.Recheck
	wait, err := c.report(ctx, key, o, p)
	if wait > 0 && (after == 0 || wait < after) {
		after = wait
	}
	if (err != nil || wait > 0) && p.Status.Phase.Final() {
		return after, err
	}
	now, later := divide(p.Actions)
	if len(later) > 0 {
		s.hand(seen, task{kind: kindOf(later[0]), do: func(ctx context.Context) error { return c.doAll(ctx, key, s, o, later) }})
	}
	return after, errors.Join(err, c.doAll(ctx, key, s, o, now))
}

// divide divides the actions into those before the first one that waits for the
// launcher, and the rest.
func divide(all []handler.Action) (now, later []handler.Action) {
	i := slices.IndexFunc(all, func(a handler.Action) bool { return kindOf(a) != "" })
	if i < 0 {
		return all, nil
	}
	return all[:i], all[i:]
}

// doAll does the actions until one fails.
func (c *Controller) doAll(ctx context.Context, key string, s *session, o handler.Observed, actions []handler.Action) error {
	for _, a := range actions {
		if err := c.do(ctx, key, s, o, a); err != nil {
			return err
		}
	}
	return nil
}

// do does one action.
func (c *Controller) do(ctx context.Context, key string, s *session, o handler.Observed, a handler.Action) error {
	timeout := actionTimeout
	if _, ok := a.(handler.Bind); ok {
		timeout = bindTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	switch a := a.(type) {
	case handler.Connect:
		c.connect(ctx, key, a.PodUID)
	case handler.Disconnect:
		if a.Destroy {
			c.guard.end(s.podUID)
		}
		c.disconnect(key, s)
		c.log.Info("ended the session with the launcher", "vmi", key, "pod", s.podUID)
	case handler.Bind:
		return c.bind(ctx, s, o)
	case handler.Put:
		return c.put(ctx, s, a.Desired)
	case handler.Emit:
		c.events.Emit(ctx, o.Instance, reconcile.Event(a.Event))
	default:
		return fmt.Errorf("unknown action %T", a)
	}
	return nil
}

func (c *Controller) bind(ctx context.Context, s *session, o handler.Observed) error {
	began := c.timing.now()
	losses := s.lostSoFar()
	n, err := c.config.Bind(ctx, s.client, o.Instance)
	if err != nil {
		s.fail(began, vmi.Finding{Reason: handler.ReasonNetworkFailed, Message: err.Error()})
		return err
	}
	s.bound(n, losses)
	for _, note := range n.Notes {
		s.log.Warn("the guest goes without something", "note", note)
	}
	s.log.Info("bound the network", "interfaces", len(n.Attachments))
	return nil
}

func (c *Controller) put(ctx context.Context, s *session, d protocol.Desired) error {
	began := c.timing.now()
	losses := s.lostSoFar()
	d.Generation = s.putting()
	err := s.client.Put(ctx, d)
	if err == nil {
		s.accepted(d, losses)
		s.log.Info("put the VMI to the launcher", "generation", d.Generation, "role", d.Role, "stop", d.Stop != nil)
		return nil
	}
	f := vmi.Finding{Reason: vmi.ReasonLauncherUnresponsive, Message: err.Error()}
	switch refusal := (*control.Error)(nil); {
	case errors.As(err, &refusal):
		f.Reason = handler.ReasonLauncherRefuses
		if refusal.Reason == protocol.ReasonStale {
			err = errors.Join(err, s.refresh(ctx))
		}
	case errors.Is(err, context.DeadlineExceeded):
		f.Message = s.noAnswer().Error()
	}
	s.fail(began, f)
	return err
}

// refresh reads the generation in force, which the next Put exceeds.
func (s *session) refresh(ctx context.Context) error {
	state, err := s.client.State(ctx)
	if err != nil {
		return fmt.Errorf("read the generation in force: %w", err)
	}
	s.alive(state.Sanitized().Generation)
	return nil
}

// report writes the status and, if that changed it, emits the events that belong
// to the change. What the budget of the VMI does not allow is not written, and is
// to be decided anew after the time that report returns.
func (c *Controller) report(ctx context.Context, key string, o handler.Observed, p handler.Plan) (wait time.Duration, err error) {
	if p.Status == nil || equality.Semantic.DeepEqual(&o.Instance.Status, p.Status) {
		return 0, nil
	}
	next := o.Instance.Status.Phase != p.Status.Phase || !equality.Semantic.DeepEqual(o.Instance.Status.MigrationState, p.Status.MigrationState)
	if wait := c.budgets.spend(key, o.Instance.UID, next, len(p.Events), c.timing.now()); wait > 0 {
		return wait, nil
	}
	changed := o.Instance.DeepCopy()
	changed.Status = *p.Status
	if _, err := c.writer.Status(ctx, o.Instance, changed); err != nil {
		return 0, err
	}
	c.log.Info("wrote the status", "vmi", key, "phase", p.Status.Phase)
	for _, e := range p.Events {
		if e.Warning {
			c.log.Warn("emit event", "vmi", key, "reason", e.Reason, "message", e.Message)
		}
		c.events.Emit(ctx, o.Instance, reconcile.Event(e))
	}
	return 0, nil
}
