// Package nft translates between the addresses of a guest and those of its pod, and
// filters what the guest sends.
//
// [Render] returns the rules as text, as the program nft reads them; [Apply] puts
// the same rules into a network namespace. Both are made of one description; no
// program is run. The rules of all interfaces of a pod are in the same tables.
//
// The table of frames (bridge) drops, where a guest's frames enter the pod, what
// is not from the guest's MAC and addresses, and on the pod network what is for other
// addresses than the guest's: see [network.Filter]. The tables of packets (ip, ip6)
// drop what comes from a guest by another way than its bridge, and what a guest that
// the pod routes for sends to the pod itself, before they translate: to its loopback,
// to the gateway, and to links that no others share.
//
// Rendering computes and touches nothing; Apply, in a file of its own, is an
// edge: it touches the kernel's nftables by netlink, and only the tables named
// podvisor. It needs the capabilities SYS_ADMIN, to reach the namespace, and
// NET_ADMIN.
//
// Traps: the kernel translates a connection by its first packet. Translations that
// change later have no effect on known connections; filters have.
package nft
