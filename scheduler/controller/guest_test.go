package controller

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/guest"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
)

// launchers are nodes whose launchers freeze guests. Each call has the next fault.
type launchers struct {
	mu     sync.Mutex
	faults []func(ctx context.Context) error
	calls  int
	frozen int
}

func (*launchers) Stream(context.Context, *vmi.VirtualMachineInstance, protocol.Stream) (net.Conn, error) {
	return nil, errors.New("no stream is opened")
}

func (l *launchers) Call(ctx context.Context, _ *vmi.VirtualMachineInstance, name protocol.Call, _, _ any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if name != "freeze" {
		return errors.New("unknown call " + string(name))
	}
	l.calls++
	var fault func(context.Context) error
	if len(l.faults) > 0 {
		fault, l.faults = l.faults[0], l.faults[1:]
	}
	if fault == nil {
		l.frozen++
		return nil
	}
	return fault(ctx)
}

func (l *launchers) made() (calls, frozen int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls, l.frozen
}

func refuses(reason string) func(context.Context) error {
	return func(context.Context) error {
		return &vmi.Refusal{Finding: vmi.Finding{Reason: reason, Message: "refused"}}
	}
}

// freezing is the decision of a kind that has a guest frozen: it is done, it waits, or it
// cannot be.
func freezing(m *vmi.VirtualMachineInstanceMigration, err error) scheduler.Plan {
	changed := m.DeepCopy()
	var refused *vmi.Refusal
	switch {
	case !errors.As(err, &refused):
		changed.Status.Phase = vmi.MigrationPhaseSucceeded
	case refused.Reason == vmi.RefusedUnavailable && guest.Guests{}.Idempotent("freeze"):
		changed.Status.Phase = vmi.MigrationPhasePending
		return scheduler.Plan{Actions: []scheduler.Action{scheduler.WriteStatus[*vmi.VirtualMachineInstanceMigration]{Object: changed}}, Recheck: time.Millisecond}
	default:
		changed.Status.Phase = vmi.MigrationPhaseFailed
	}
	return scheduler.Plan{Actions: []scheduler.Action{scheduler.WriteStatus[*vmi.VirtualMachineInstanceMigration]{Object: changed}}}
}

func TestAKindAsksAGuestThroughTheControllersConfiguration(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		phase         vmi.Phase
		faults        []func(context.Context) error
		want          vmi.MigrationPhase
		calls, frozen int
	}{
		"it is done":              {vmi.PhaseRunning, nil, vmi.MigrationPhaseSucceeded, 1, 1},
		"the handler was away":    {vmi.PhaseRunning, []func(context.Context) error{refuses(vmi.RefusedUnavailable), refuses(vmi.RefusedUnavailable)}, vmi.MigrationPhaseSucceeded, 3, 1},
		"the launcher hangs once": {vmi.PhaseRunning, []func(context.Context) error{func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}, vmi.MigrationPhaseSucceeded, 2, 1},
		"the answer was lost": {vmi.PhaseRunning, []func(context.Context) error{func(context.Context) error { return errors.New("connection reset by peer") }},
			vmi.MigrationPhaseSucceeded, 2, 1},
		"the launcher is gone": {vmi.PhaseRunning, []func(context.Context) error{refuses(vmi.RefusedNotFound)}, vmi.MigrationPhaseFailed, 1, 0},
		"the VMI has ended":    {vmi.PhaseSucceeded, nil, vmi.MigrationPhaseFailed, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := &launchers{faults: tt.faults}
			v := stored(tt.phase)
			m := &vmi.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "migration-uid"}}
			api, err := client.New(fake.New(m).Config())
			require.NoError(t, err)
			migrations := KindOf[*vmi.VirtualMachineInstanceMigration, *vmi.VirtualMachineInstanceMigrationList]{
				Definition: vmi.VirtualMachineInstanceMigrations, Name: "example-migration",
				Observe: func(ctx context.Context, c *Controller, m *vmi.VirtualMachineInstanceMigration) (Decide[*vmi.VirtualMachineInstanceMigration], error) {
					if p := m.Status.Phase; p == vmi.MigrationPhaseSucceeded || p == vmi.MigrationPhaseFailed {
						return func(*vmi.VirtualMachineInstanceMigration, *vmi.Finding) scheduler.Plan { return scheduler.Plan{} }, nil
					}
					err := c.cfg.Guests.Call(ctx, v, "freeze", vmi.FreezeUnfreezeTimeout{UnfreezeTimeout: &metav1.Duration{}}, nil)
					return func(m *vmi.VirtualMachineInstanceMigration, _ *vmi.Finding) scheduler.Plan { return freezing(m, err) }, nil
				},
			}
			c, err := New(Config{Client: api, Kube: kubefake.NewClientset(), Launcher: rendering, Kinds: []Kind{migrations}, Guests: guest.Guests{Nodes: nodes, MostToAsk: 50 * time.Millisecond}})
			require.NoError(t, err)
			delete(c.kinds, moves.Name) // the kind is the test's
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- c.Run(ctx) }()
			defer func() { cancel(); require.NoError(t, <-done) }()
			require.Eventually(t, func() bool {
				m, err := api.VirtualMachineInstanceMigrations("default").Get(ctx, "web", metav1.GetOptions{})
				return err == nil && m.Status.Phase == tt.want
			}, time.Minute, 5*time.Millisecond)
			calls, frozen := nodes.made()
			require.Equal(t, [2]int{tt.calls, tt.frozen}, [2]int{calls, frozen})
		})
	}
}
