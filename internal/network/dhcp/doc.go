// Package dhcp serves one guest its addresses: by DHCPv4, and by router advertisements
// and DHCPv6.
//
// [Server.Serve] answers the one client of a [network.Offer] on one link, and no other.
// The offer never changes and the lease never ends, so there is no state: an
// answer follows from the offer, the [Resolver] and the request alone. [Server.Serve6] does
// the same for a [network.Offer6], and says to the guest who its router is: the pod, or the pod's own router. A
// VMI with several interfaces has one Serve and one Serve6 for each.
//
// This is an edge: Serve opens a UDP socket on port 67 of one link, for which it
// needs no capability in a pod whose runtime permits low ports to all users, and
// NET_BIND_SERVICE elsewhere. An advertisement needs a raw socket, which an ordinary user
// cannot open. So Serve6 reads and writes frames by a tap device that belongs to its user
// and is a port of the guest's bridge; the rules of package nft let nothing but its answers
// pass from there, to the guest alone.
//
// Traps: answers are broadcast, since a pod cannot send to an address that is its
// own, which is the guest's address with the bridge binding. They carry no UDP
// checksum, since some clients read packets before the kernel has computed it.
package dhcp
