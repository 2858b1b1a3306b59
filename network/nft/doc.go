// Package nft translates the addresses of a guest behind its pod's.
//
// [Render] shows the rules as text, as the program nft would read them; [Apply]
// puts the same rules into a network namespace. Both are made of one
// description, so that the text tells the truth; no program is run.
//
// Rendering computes and touches nothing; Apply, in a file of its own, is an
// edge: it touches the kernel's nftables by netlink, and only the tables named
// podvisor. It needs the capabilities SYS_ADMIN, to reach the namespace, and
// NET_ADMIN.
//
// Traps: the kernel translates a connection by its first packet. Rules that
// change later change nothing for the connections that are known.
package nft
