// Package network plans how a machine's interfaces are connected to the networks
// of its pod.
//
// [Plan] takes the machine, and the links of its pod as they are, and returns a
// [Config]: the links, addresses, settings and address translation that shall
// be, what the launcher must know to connect the guest, and what the machine's
// status says. Package network/link reads the links and applies the plan,
// network/nft the address translation, and network/dhcp tells the guest its
// address:
//
//	state, err := link.Observe(ns)
//	cfg, err := network.Plan(network.Input{Instance: machine, State: state, Owner: owner})
//	err = link.Apply(ns, cfg)
//	err = nft.Apply(ns, cfg.NAT)
//	// cfg.Attachments go to the launcher, cfg.Interfaces into the status.
//
// It computes; it touches nothing. It does not attach a pod to networks: that is
// the work of Kubernetes and its network plugins. Each binding is in a file of
// its own.
//
// Traps: the plan depends on what the pod's interface was before it was plumbed,
// and the bridge binding takes that away. The plan therefore keeps it in the
// kernel, and finds it there; do not remove the link eth0 or the routes in the
// table [RememberTable] of a plumbed pod.
package network
