package guest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/scheduler/guest"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// nodes answer with a function.
type nodes func(ctx context.Context, what string) error

func (n nodes) Call(ctx context.Context, _ *vmi.VirtualMachineInstance, call protocol.Call, _, answer any) error {
	if err := n(ctx, string(call)); err != nil {
		return err
	}
	*answer.(*string) = "done"
	return nil
}

func (n nodes) Stream(ctx context.Context, _ *vmi.VirtualMachineInstance, name protocol.Stream) (net.Conn, error) {
	near, far := net.Pipe()
	return near, errors.Join(n(ctx, string(name)), far.Close())
}

// hangs answers nothing before ctx ends.
func hangs(ctx context.Context, _ string) error {
	<-ctx.Done()
	return io.ErrUnexpectedEOF // as a connection does that is closed then
}

func on(p vmi.Phase) *vmi.VirtualMachineInstance {
	v := vmitest.New(vmitest.WithName("web"), vmitest.WithPhase(p))
	v.Status.NodeName = "n1"
	return v
}

func TestACallIsAnswered(t *testing.T) {
	var answer string
	require.NoError(t, guest.Guests{Nodes: nodes(func(context.Context, string) error { return nil })}.Call(t.Context(), on(vmi.PhaseRunning), "guestosinfo", nil, &answer))
	require.Equal(t, "done", answer)
}

func TestACallEndsInItsTime(t *testing.T) {
	for _, tt := range []struct {
		name   string
		call   protocol.Call
		guests guest.Guests
		after  time.Duration
	}{
		{"of the launcher", "pause", guest.Guests{}, 10 * time.Second},
		{"of the agent", "freeze", guest.Guests{}, 45 * time.Second},
		{"that is no verb", "progress", guest.Guests{}, 10 * time.Second},
		{"of the launcher, configured", "pause", guest.Guests{MostToCall: time.Second}, time.Second},
		{"of the agent, configured", "freeze", guest.Guests{MostToAsk: time.Second}, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				tt.guests.Nodes = nodes(hangs)
				err := tt.guests.Call(t.Context(), on(vmi.PhaseRunning), tt.call, nil, new(string))
				require.Equal(t, tt.after, time.Since(began))
				var r *vmi.Refusal
				require.ErrorAs(t, err, &r)
				require.Equal(t, vmi.Finding{Reason: vmi.RefusedUnavailable, Message: "node n1 does not answer: context deadline exceeded: unexpected EOF"}, r.Finding)
			})
		})
	}
}

func TestTheTimeOfAStreamIsThatOfItsOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := guest.Guests{Nodes: nodes(hangs)}.Stream(t.Context(), on(vmi.PhaseRunning), "console")
		require.ErrorContains(t, err, "deadline exceeded")
		require.Equal(t, 10*time.Second, time.Since(began))
		c, err := guest.Guests{Nodes: nodes(func(context.Context, string) error { return nil })}.Stream(t.Context(), on(vmi.PhaseRunning), "console")
		require.NoError(t, err)
		time.Sleep(time.Hour)
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF, "the stream was open until its other end closed it")
	})
}

func TestEveryErrorIsARefusal(t *testing.T) {
	busy := &vmi.Refusal{Finding: vmi.Finding{Reason: vmi.RefusedBusy, Message: "another client has it"}}
	for name, tt := range map[string]struct {
		guests guest.Guests
		phase  vmi.Phase
		want   vmi.Finding
	}{
		"of the launcher":             {guest.Guests{Nodes: nodes(func(context.Context, string) error { return busy })}, vmi.PhaseRunning, busy.Finding},
		"of the way":                  {guest.Guests{Nodes: nodes(func(context.Context, string) error { return io.EOF })}, vmi.PhaseScheduled, vmi.Finding{Reason: vmi.RefusedUnavailable, Message: "node n1 does not answer: EOF"}},
		"of a VMI without a launcher": {guest.Guests{Nodes: nodes(hangs)}, vmi.PhaseFailed, vmi.Finding{Reason: vmi.RefusedNotFound, Message: "it is in phase Failed, in which it has no launcher"}},
		"of a new VMI":                {guest.Guests{Nodes: nodes(hangs)}, vmi.PhaseUnset, vmi.Finding{Reason: vmi.RefusedNotFound, Message: "it is in phase Pending, in which it has no launcher"}},
		"without nodes":               {guest.Guests{}, vmi.PhaseRunning, vmi.Finding{Reason: vmi.RefusedUnavailable, Message: "virt-controller does not reach the nodes: it is configured without them"}},
	} {
		t.Run(name, func(t *testing.T) {
			for what, err := range map[string]error{
				"call":   tt.guests.Call(t.Context(), on(tt.phase), "pause", nil, nil),
				"stream": func() error { _, err := tt.guests.Stream(t.Context(), on(tt.phase), "console"); return err }(),
			} {
				var r *vmi.Refusal
				require.ErrorAs(t, err, &r, what)
				require.Equal(t, tt.want, r.Finding, what)
			}
		})
	}
}

func TestACallIsRepeatedUnlessItIsDoneAgain(t *testing.T) {
	for call, once := range map[string]bool{"reset": true, "softreboot": true, "pause": false, "freeze": false, "guestosinfo": false, "progress": false} {
		require.Equal(t, !once, guest.Guests{}.Idempotent(protocol.Call(call)), call)
	}
}
