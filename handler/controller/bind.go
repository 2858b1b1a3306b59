package controller

import (
	"context"
	"errors"
	"fmt"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/internal/network/link"
	"github.com/podvisor/podvisor/internal/network/nft"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/network/cni"
	"github.com/podvisor/podvisor/vmi"
)

// bindNetwork returns the function that binds the interfaces of a VMI to the
// networks of its pod by one of the bindings: it gets the pod's network namespace
// from the launcher, plans and applies what is missing there. What is bound
// already stays as it is. A namespace that was bound for one VMI is refused for every
// other. Nil bindings: [network.Bindings].
func bindNetwork(bindings []network.Binding) func(context.Context, *control.Client, *vmi.VirtualMachineInstance) (network.Config, error) {
	known := &claims{}
	return func(ctx context.Context, launcher *control.Client, v *vmi.VirtualMachineInstance) (n network.Config, err error) {
		answer, cancel := context.WithTimeout(ctx, handler.AnswerTimeout)
		defer cancel()
		ns, err := launcher.Namespace(answer)
		if err != nil {
			return network.Config{}, err
		}
		defer func() { err = errors.Join(err, ns.Close()) }()
		if err := link.Check(ns.File, ns.Launcher); err != nil {
			return network.Config{}, fmt.Errorf("the launcher's network namespace: %w", err)
		}
		cookie, err := link.Cookie(ns.File)
		if err == nil {
			err = known.claim(cookie, v.UID)
		}
		if err != nil {
			return network.Config{}, fmt.Errorf("the launcher's network namespace: %w", err)
		}
		state, err := link.Observe(ctx, ns.File)
		if err != nil {
			return network.Config{}, err
		}
		if name := network.RoutedLink(v, bindings); name != "" {
			if err := link.FindRouter(ctx, ns.File, &state, name); err != nil {
				return network.Config{}, err
			}
		}
		n, err = network.Plan(network.Input{
			Instance: v, State: state, Owner: network.Owner{UID: ns.UID, GID: ns.GID},
			Links: cni.Links(v), Bindings: bindings,
		})
		if err != nil {
			return network.Config{}, err
		}
		// The rules come first: who can open a tap device can send from then on.
		if err := nft.Apply(ns.File, n); err != nil {
			return network.Config{}, err
		}
		return n, link.Apply(ctx, ns.File, n)
	}
}
