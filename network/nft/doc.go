// Package nft translates between the addresses of a guest and those of its pod.
//
// [Render] returns the rules as text, as the program nft reads them; [Apply] puts
// the same rules into a network namespace. Both are made of one description; no
// program is run. The rules of all interfaces of a pod are in the same tables.
//
// Rendering computes and touches nothing; Apply, in a file of its own, is an
// edge: it touches the kernel's nftables by netlink, and only the tables named
// podvisor. It needs the capabilities SYS_ADMIN, to reach the namespace, and
// NET_ADMIN.
//
// Traps: the kernel translates a connection by its first packet. Rules that
// change later have no effect on known connections.
package nft
