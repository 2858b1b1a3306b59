package dhcp

import (
	"encoding/binary"
	"math"
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/rfc1035label"

	"github.com/podvisor/podvisor/network"
)

// The options of a router advertisement (RFC 4861, 4.6, and RFC 8106).
const (
	optionSourceMAC = 1
	optionPrefix    = 3
	optionMTU       = 5
	optionServers   = 25
	optionSearch    = 31
)

const (
	// routerLifetime is how long the guest uses its router after an advertisement: the
	// longest that RFC 4861 allows.
	routerLifetime = 9000 * time.Second
	// managed says that addresses and the rest come by DHCPv6.
	managed = 0x80 | 0x40
	// onLink says that the addresses of the prefix are reached without a router.
	onLink = 0x80
	// leastMTU is the least one of IPv6.
	leastMTU = 1280
)

// advertisement is the router advertisement for the guest, in a frame to the address.
func advertisement(o network.Offer6, r Resolver, to netip.Addr) []byte {
	const hops = 64
	b := []byte{routerAdvert, 0, 0, 0, hops, managed}
	b = binary.BigEndian.AppendUint16(b, uint16(routerLifetime/time.Second))
	b = append(b, make([]byte, 8)...) // nothing about when neighbours are reachable
	if mac, err := net.ParseMAC(o.RouterMAC); err == nil {
		b = append(append(b, optionSourceMAC, 1), mac...)
	}
	if o.MTU >= leastMTU {
		b = append(b, optionMTU, 1, 0, 0)
		b = binary.BigEndian.AppendUint32(b, uint32(o.MTU))
	}
	b = append(b, optionPrefix, 4, byte(o.Address.Bits()), onLink)
	b = binary.BigEndian.AppendUint32(b, math.MaxUint32)
	b = binary.BigEndian.AppendUint32(b, math.MaxUint32)
	b = append(append(b, 0, 0, 0, 0), o.Address.Masked().Addr().AsSlice()...)
	b = append(b, resolverOptions(r.under(o.Subdomain))...)
	binary.BigEndian.PutUint16(b[2:], checksum(o.Router, to, protocolICMP6, b))
	return frame6(o, to, protocolICMP6, b)
}

// resolverOptions are the options about the resolver, as far as IPv6 reaches it.
func resolverOptions(r Resolver) []byte {
	servers := r.servers6()
	if len(servers) == 0 {
		return nil
	}
	b := []byte{optionServers, byte(1 + 2*len(servers)), 0, 0, 0xff, 0xff, 0xff, 0xff}
	for _, s := range servers {
		b = append(b, s...)
	}
	if len(r.Search) == 0 {
		return b
	}
	names := (&rfc1035label.Labels{Labels: r.Search}).ToBytes()
	for len(names)%8 != 0 {
		names = append(names, 0)
	}
	const longest = 254 * 8
	if len(names) > longest {
		return b
	}
	b = append(b, optionSearch, byte(1+len(names)/8), 0, 0, 0xff, 0xff, 0xff, 0xff)
	return append(b, names...)
}

// mostServers is how many servers a guest gets; a resolver asks three.
const mostServers = 8

// servers6 are the servers that are reached by IPv6.
func (r Resolver) servers6() []net.IP {
	var out []net.IP
	for _, a := range r.Nameservers {
		if a.Is6() && len(out) < mostServers {
			out = append(out, a.AsSlice())
		}
	}
	return out
}
