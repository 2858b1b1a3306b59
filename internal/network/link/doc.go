// Package link observes the network links of a pod and makes them what a VMI
// needs.
//
// [Observe] reads a network namespace, [network.Plan] decides, and [Apply] takes
// the steps that are missing: none, if they were taken before. Everything that
// has to survive is in the kernel, so the process may end at any step and the
// next one continues. The namespace is given as an open file, as a launcher sends
// it; [Check] such a file before it is used.
//
// The address translation is applied by package nft.
//
// This is an edge: it touches the kernel's network configuration by netlink, and
// by a private mount of procfs for the settings that netlink does not reach. Each tap
// device gets a small program that the kernel runs for its frames. The capabilities
// SYS_ADMIN and NET_ADMIN are all it needs, besides /dev/net/tun and the kernel's
// description of its types in /sys/kernel/btf.
//
// Traps: a tap device is opened by name in the namespace that it was made in. A
// link that is set down loses its IPv6 addresses and all its routes.
package link
