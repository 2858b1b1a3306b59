// Package network plans how the interfaces of a VMI are bound to the networks of its pod.
//
// [Plan] takes the VMI and the links of its pod as they are, and returns a [Config]. It
// has the links, addresses, settings and address translation that the pod's namespace
// needs. It also has what the launcher needs to attach the guest, and what the VMI's
// status shows. Package internal/network/link reads the links and applies the plan,
// internal/network/nft applies the address translation and the filters, and
// internal/network/dhcp offers the guest its addresses:
//
//	state, err := link.Observe(ctx, ns)
//	err = link.FindRouter(ctx, ns, &state, network.RoutedLink(instance, nil)) // if that names a link
//	cfg, err := network.Plan(network.Input{Instance: instance, State: state, Owner: owner})
//	err = nft.Apply(ns, cfg)
//	err = link.Apply(ctx, ns, cfg)
//	// cfg.Attachments go to the launcher, cfg.Interfaces into the status.
//
// Each interface is planned for itself, by one [Binding]. The built-in bindings are in one
// file each, with the marker +podvisor:entry for the generated list [Bindings]; [Input]
// takes others. The links of an interface have the names that [NamesOf] returns.
//
// It computes; it touches nothing. It does not attach a pod to networks: that is done by
// Kubernetes and its network plugins.
//
// Traps: a plan depends on what the pod's link was before it was bound, and the bridge
// binding changes that link. The plan therefore stores the link's MAC, addresses and
// routes in the kernel and reads them from there. Do not remove the stand-in link (eth0)
// or the routes in the table [RememberTable] of a bound pod.
package network
