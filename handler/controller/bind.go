package controller

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/internal/network/link"
	"github.com/podvisor/podvisor/internal/network/nft"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/network/cni"
	"github.com/podvisor/podvisor/vmi"
)

// binder binds the interfaces of VMIs to the networks of their pods. A namespace that was
// bound for one VMI is refused for every other.
type binder struct {
	bindings []network.Binding // nil: [network.Bindings]
	known    claims
}

// bind binds the interfaces of a VMI: it gets the pod's network namespace from the launcher,
// plans and applies what is missing there. What is bound already stays as it is.
func (b *binder) bind(ctx context.Context, launcher *control.Client, v *vmi.VirtualMachineInstance) (n network.Config, err error) {
	err = b.in(ctx, launcher, v, func(ns *os.File, planned network.Config) error {
		n = planned
		// The rules come first: who can open a tap device can send from then on.
		if err := nft.Apply(ns, n); err != nil {
			return err
		}
		return link.Apply(ctx, ns, n)
	})
	if err != nil {
		return network.Config{}, err
	}
	return n, nil
}

// announce makes known to the networks of a bound pod that the guest of the VMI is there, when
// moved says so. All that it needs is there before.
func (b *binder) announce(ctx context.Context, launcher *control.Client, v *vmi.VirtualMachineInstance, moved <-chan struct{}) error {
	return b.in(ctx, launcher, v, func(ns *os.File, n network.Config) error {
		select {
		case <-moved:
			return link.Announce(ctx, ns, n, v.Status.Interfaces)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

// hold has the guest of the VMI hold its ports in the networks of a bound pod until ctx ends.
func (b *binder) hold(ctx context.Context, launcher *control.Client, v *vmi.VirtualMachineInstance) error {
	return b.in(ctx, launcher, v, func(ns *os.File, n network.Config) error { return link.Hold(ctx, ns, n) })
}

// leave ends the connections of a guest that has left the pod for good.
func (b *binder) leave(ctx context.Context, launcher *control.Client, v *vmi.VirtualMachineInstance) error {
	return b.in(ctx, launcher, v, func(ns *os.File, n network.Config) error {
		left := n
		left.NAT = nil
		if err := nft.Apply(ns, left); err != nil {
			return err
		}
		return link.Reset(ctx, ns, n)
	})
}

// in calls do with the network namespace of the launcher's pod, and with what the VMI has
// there when it is bound.
func (b *binder) in(ctx context.Context, launcher *control.Client, v *vmi.VirtualMachineInstance, do func(*os.File, network.Config) error) (err error) {
	answer, cancel := context.WithTimeout(ctx, handler.AnswerTimeout)
	defer cancel()
	ns, err := launcher.Namespace(answer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ns.Close()) }()
	if err := link.Check(ns.File, ns.Launcher); err != nil {
		return fmt.Errorf("the launcher's network namespace: %w", err)
	}
	cookie, err := link.Cookie(ns.File)
	if err == nil {
		err = b.known.claim(cookie, v.UID)
	}
	if err != nil {
		return fmt.Errorf("the launcher's network namespace: %w", err)
	}
	state, err := link.Observe(ctx, ns.File)
	if err != nil {
		return err
	}
	if name := network.RoutedLink(v, b.bindings); name != "" {
		if err := link.FindRouter(ctx, ns.File, &state, name); err != nil {
			return err
		}
	}
	n, err := network.Plan(network.Input{
		Instance: v, State: state, Owner: network.Owner{UID: ns.UID, GID: ns.GID},
		Links: cni.Links(v), Bindings: b.bindings,
	})
	if err != nil {
		return err
	}
	return do(ns.File, n)
}
