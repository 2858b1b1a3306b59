package controller

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// Binder binds the network of a VMI in the pod that the launcher is in. Binding
// again what is bound changes nothing.
type Binder func(ctx context.Context, launcher *control.Client, v *vmi.VirtualMachineInstance) (network.Config, error)

// actionTimeout is how long an action may take. A launcher that does not answer
// holds a worker for so long, and other VMIs wait for workers.
const actionTimeout = handler.AnswerTimeout

// act does what the plan says: the status first, which a launcher cannot delay,
// and the actions until one fails, also if the status could not be written. But a
// final status comes before what follows from it: the launcher's reaction would be
// reported in its place.
func (c *Controller) act(ctx context.Context, key string, s *session, o handler.Observed, p handler.Plan) error {
	err := c.report(ctx, key, o, p)
	if err != nil && p.Status.Phase.Final() {
		return err
	}
	for _, a := range p.Actions {
		if failed := c.do(ctx, key, s, o, a); failed != nil {
			return errors.Join(err, failed)
		}
	}
	return err
}

// do does one action.
func (c *Controller) do(ctx context.Context, key string, s *session, o handler.Observed, a handler.Action) error {
	ctx, cancel := context.WithTimeout(ctx, actionTimeout)
	defer cancel()
	switch a := a.(type) {
	case handler.Connect:
		c.connect(ctx, key, a.PodUID)
	case handler.Disconnect:
		c.disconnect(key)
		c.log.Info("ended the session with the launcher", "vmi", key)
	case handler.BindNetwork:
		return c.bind(ctx, key, s, o)
	case handler.Put:
		return c.put(ctx, key, s, a.Desired)
	case handler.Emit:
		c.events.Emit(ctx, o.Instance, reconcile.Event(a.Event))
	default:
		return fmt.Errorf("unknown action %T", a)
	}
	return nil
}

func (c *Controller) bind(ctx context.Context, key string, s *session, o handler.Observed) error {
	began := c.timing.now()
	n, err := c.config.Bind(ctx, s.client, o.Instance)
	if err != nil {
		s.fail(began, vmi.Finding{Reason: handler.ReasonNetworkFailed, Message: err.Error()})
		return retriable("bind the network", err)
	}
	s.bound(n)
	c.log.Info("bound the network", "vmi", key, "interfaces", len(n.Attachments))
	return nil
}

func (c *Controller) put(ctx context.Context, key string, s *session, d protocol.Desired) error {
	began := c.timing.now()
	s.putting(d.Generation)
	err := s.client.Put(ctx, d)
	if err == nil {
		s.accepted(d)
		c.log.Info("put the VMI to the launcher", "vmi", key, "generation", d.Generation, "stop", d.Stop != nil)
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
	return retriable("put the VMI to the launcher", err)
}

// refresh reads the generation in force, which the next Put exceeds.
func (s *session) refresh(ctx context.Context) error {
	state, err := s.client.State(ctx)
	if err != nil {
		return fmt.Errorf("read the generation in force: %w", err)
	}
	s.alive(handler.Sanitize(state).Generation)
	return nil
}

// retriable is an error that the loop retries, also if it is a [vmi.ErrInvalid]:
// the launcher and the pod may change although the VMI does not.
func retriable(operation string, err error) error {
	if errors.Is(err, vmi.ErrInvalid) {
		return errors.New(operation + ": " + err.Error())
	}
	return fmt.Errorf("%s: %w", operation, err)
}

// report writes the status and, if that changed it, emits the events that belong
// to the change.
func (c *Controller) report(ctx context.Context, key string, o handler.Observed, p handler.Plan) error {
	if p.Status == nil || equality.Semantic.DeepEqual(&o.Instance.Status, p.Status) {
		return nil
	}
	changed := o.Instance.DeepCopy()
	changed.Status = *p.Status
	if _, err := c.writer.Status(ctx, o.Instance, changed); err != nil {
		return err
	}
	c.log.Info("wrote the status", "vmi", key, "phase", p.Status.Phase)
	for _, e := range p.Events {
		if e.Warning {
			c.log.Warn("emit event", "vmi", key, "reason", e.Reason, "message", e.Message)
		}
		c.events.Emit(ctx, o.Instance, reconcile.Event(e))
	}
	return nil
}
