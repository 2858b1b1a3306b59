package guest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/internal/vmi/verb"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

const (
	// mostToCall is how long a call may take, or the opening of a stream.
	mostToCall = 10 * time.Second
	// mostToAsk is how long a call may take that the guest's agent answers. The API server
	// waits a minute for the answer of a verb.
	mostToAsk = 45 * time.Second
)

// Nodes reach the launchers of VMIs. A [github.com/podvisor/podvisor/handler/stream.Dialer]
// is one. Errors that are a [*vmi.Refusal] are of the node or the launcher; others are of the
// way to it.
type Nodes interface {
	// Stream opens the named stream of the VMI. ctx bounds the opening alone.
	Stream(ctx context.Context, v *vmi.VirtualMachineInstance, name protocol.Stream) (net.Conn, error)
	// Call makes the named call with the options, nil for none, and decodes the answer
	// into answer unless it is nil.
	Call(ctx context.Context, v *vmi.VirtualMachineInstance, name protocol.Call, options, answer any) error
}

// Guests reach the launchers of VMIs in a limited time. Its methods may be called from any
// goroutine.
type Guests struct {
	// Nodes are the way. Nil: every call and stream is refused as unavailable.
	Nodes Nodes
	// MostToCall is how long a call may take, or the opening of a stream, and MostToAsk a
	// call that the guest's agent answers. 0: 10 s and 45 s.
	MostToCall, MostToAsk time.Duration
}

// Idempotent reports whether a call may be repeated when its answer is lost: made again, it
// does nothing more.
func (g Guests) Idempotent(call protocol.Call) bool {
	v, _ := verb.Find(verb.VMIs, string(call))
	return !v.Once
}

// Limit is how long the call may take.
func (g Guests) Limit(call protocol.Call) time.Duration {
	if v, _ := verb.Find(verb.VMIs, string(call)); v.Agent {
		return cmp.Or(g.MostToAsk, mostToAsk)
	}
	return cmp.Or(g.MostToCall, mostToCall)
}

// Call makes the named call to the launcher of the VMI, and decodes the answer into answer
// unless it is nil. It returns within [Guests.Limit]. Every error is a [*vmi.Refusal].
func (g Guests) Call(ctx context.Context, v *vmi.VirtualMachineInstance, call protocol.Call, options, answer any) error {
	if err := g.reachable(v); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, g.Limit(call))
	defer cancel()
	return refusal(ctx, v, g.Nodes.Call(ctx, v, call, options, answer))
}

// Stream opens the named stream of the VMI. The limit of time is for the opening. Every
// error is a [*vmi.Refusal].
func (g Guests) Stream(ctx context.Context, v *vmi.VirtualMachineInstance, name protocol.Stream) (net.Conn, error) {
	if err := g.reachable(v); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(g.MostToCall, mostToCall))
	defer cancel()
	c, err := g.Nodes.Stream(ctx, v, name)
	return c, refusal(ctx, v, err)
}

// reachable says why the VMI has no launcher that could be asked.
func (g Guests) reachable(v *vmi.VirtualMachineInstance) error {
	switch p := v.Status.Phase; {
	case g.Nodes == nil:
		return transport.Refusal(vmi.RefusedUnavailable, "virt-controller does not reach the nodes: it is configured without them")
	case p != vmi.PhaseRunning && p != vmi.PhaseScheduled:
		return transport.Refusal(vmi.RefusedNotFound, "it is in phase %s, in which it has no launcher", cmp.Or(p, vmi.PhasePending))
	}
	return nil
}

// refusal is what an error of the nodes stands for. Nil stays nil.
func refusal(ctx context.Context, v *vmi.VirtualMachineInstance, err error) error {
	var r *vmi.Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &r):
		return r
	}
	if why := context.Cause(ctx); why != nil && !errors.Is(err, why) {
		err = fmt.Errorf("%w: %w", why, err)
	}
	return transport.Refusal(vmi.RefusedUnavailable, "node %s does not answer: %v", v.Status.NodeName, err)
}
