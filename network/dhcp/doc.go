// Package dhcp tells one guest its address by DHCPv4.
//
// [Serve] answers the one client of a [network.Offer] on one link, and nobody
// else. The offer never changes and the lease never ends, so nothing is
// remembered: an answer follows from the offer, the [Resolver] and the question
// alone. Addresses of IPv6 are not served.
//
// This is an edge: it opens a UDP socket on port 67 of one link, for which it
// needs no capability in a pod whose runtime lets everybody have low ports, and
// NET_BIND_SERVICE elsewhere.
//
// Traps: answers are broadcast, since a pod cannot send to an address that is its
// own, and a guest with the bridge binding has just that. They carry no UDP
// checksum, since some clients look at packets before the kernel has computed
// it.
package dhcp
