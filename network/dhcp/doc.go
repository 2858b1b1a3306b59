// Package dhcp serves one guest its address by DHCPv4.
//
// [Serve] answers the one client of a [network.Offer] on one link, and no other.
// The offer never changes and the lease never ends, so there is no state: an
// answer follows from the offer, the [Resolver] and the request alone. Addresses
// of IPv6 are not served. A VMI with several interfaces has one Serve for each
// offer.
//
// This is an edge: it opens a UDP socket on port 67 of one link, for which it
// needs no capability in a pod whose runtime permits low ports to all users, and
// NET_BIND_SERVICE elsewhere.
//
// Traps: answers are broadcast, since a pod cannot send to an address that is its
// own, which is the guest's address with the bridge binding. They carry no UDP
// checksum, since some clients read packets before the kernel has computed it.
package dhcp
