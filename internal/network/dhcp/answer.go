package dhcp

import (
	"math"
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/rfc1035label"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// forever is the lease time that has no end (RFC 2131, 3.3).
const forever = math.MaxUint32 * time.Second

// answer returns the reply to the client, or nil if there is none.
func answer(o network.Offer, r Resolver, m *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 {
	if m.OpCode != dhcpv4.OpcodeBootRequest || m.ClientHWAddr.String() != o.MAC || !unset(m.GatewayIPAddr) {
		return nil
	}
	switch m.MessageType() {
	case dhcpv4.MessageTypeDiscover:
		return accept(o, r, m, dhcpv4.MessageTypeOffer)
	case dhcpv4.MessageTypeRequest:
		if s := m.ServerIdentifier(); s != nil && !is(s, o.Server) {
			return nil // The client took the offer of another server.
		}
		if !is(requested(m), o.Address.Addr()) {
			return refuse(o, m)
		}
		return accept(o, r, m, dhcpv4.MessageTypeAck)
	case dhcpv4.MessageTypeInform:
		return inform(o, r, m, dhcpv4.MessageTypeAck)
	default:
		// No lease is stored that a RELEASE could free; and after a DECLINE there is
		// no other address to offer.
		return nil
	}
}

// requested is the address that the client asks to get or keep.
func requested(m *dhcpv4.DHCPv4) net.IP {
	if ip := m.RequestedIPAddress(); ip != nil {
		return ip
	}
	return m.ClientIPAddr
}

// accept gives the client its address.
func accept(o network.Offer, r Resolver, m *dhcpv4.DHCPv4, t dhcpv4.MessageType) *dhcpv4.DHCPv4 {
	a := inform(o, r, m, t)
	if a == nil {
		return nil
	}
	a.UpdateOption(dhcpv4.OptIPAddressLeaseTime(forever))
	a.YourIPAddr = o.Address.Addr().AsSlice()
	return a
}

// refuse refuses the address that the client requests, so that it starts anew.
func refuse(o network.Offer, m *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 {
	return reply(m, dhcpv4.MessageTypeNak, dhcpv4.OptServerIdentifier(o.Server.AsSlice()))
}

// inform gives the client everything but an address.
func inform(o network.Offer, r Resolver, m *dhcpv4.DHCPv4, t dhcpv4.MessageType) *dhcpv4.DHCPv4 {
	options := []dhcpv4.Option{
		dhcpv4.OptServerIdentifier(o.Server.AsSlice()),
		dhcpv4.OptSubnetMask(net.CIDRMask(o.Address.Bits(), 32)),
	}
	if o.Router.IsValid() {
		options = append(options, dhcpv4.OptRouter(o.Router.AsSlice()))
	}
	if len(o.Routes) > 0 {
		options = append(options, dhcpv4.OptClasslessStaticRoute(routes(o.Routes)...))
	}
	if o.MTU > 0 && o.MTU <= math.MaxUint16 {
		options = append(options, dhcpv4.OptGeneric(dhcpv4.OptionInterfaceMTU, []byte{byte(o.MTU >> 8), byte(o.MTU)}))
	}
	if o.Hostname != "" {
		options = append(options, dhcpv4.OptHostName(o.Hostname))
	}
	options = append(options, names(r.under(o.Subdomain))...)
	if o.Options == nil {
		return reply(m, t, options...)
	}
	a := reply(m, t, append(options, own(*o.Options)...)...)
	if a != nil {
		boot(a, *o.Options)
	}
	return a
}

// own are the options of the spec.
func own(o vmi.DHCPOptions) []dhcpv4.Option {
	var out []dhcpv4.Option
	if o.TFTPServerName != "" {
		out = append(out, dhcpv4.OptTFTPServerName(o.TFTPServerName))
	}
	if o.BootFileName != "" {
		out = append(out, dhcpv4.OptBootFileName(o.BootFileName))
	}
	var servers []net.IP
	for _, s := range o.NTPServers {
		if a, err := netip.ParseAddr(s); err == nil && a.Unmap().Is4() {
			servers = append(servers, a.Unmap().AsSlice())
		}
	}
	if len(servers) > 0 {
		out = append(out, dhcpv4.OptNTPServers(servers...))
	}
	for _, p := range o.PrivateOptions {
		if p.Option >= firstPrivate && p.Option <= lastPrivate {
			out = append(out, dhcpv4.OptGeneric(dhcpv4.GenericOptionCode(p.Option), []byte(p.Value)))
		}
	}
	return out
}

// The numbers of private options.
const (
	firstPrivate = 224
	lastPrivate  = 254
)

// boot fills the fields that the boot ROM of an interface reads before it reads
// options. The one for the server has room for an address only.
func boot(a *dhcpv4.DHCPv4, o vmi.DHCPOptions) {
	const room = 127
	if len(o.BootFileName) <= room {
		a.BootFileName = o.BootFileName
	}
	if s, err := netip.ParseAddr(o.TFTPServerName); err == nil && s.Unmap().Is4() {
		a.ServerIPAddr = s.Unmap().AsSlice()
	}
}

// names are the options about the resolver.
func names(r Resolver) []dhcpv4.Option {
	var servers []net.IP
	for _, a := range r.Nameservers {
		if a.Is4() {
			servers = append(servers, a.AsSlice())
		}
	}
	var options []dhcpv4.Option
	if len(servers) > 0 {
		options = append(options, dhcpv4.OptDNS(servers...))
	}
	if len(r.Search) > 0 {
		options = append(options,
			dhcpv4.OptDomainName(r.Search[0]),
			dhcpv4.OptDomainSearch(&rfc1035label.Labels{Labels: r.Search}))
	}
	return options
}

func routes(in []network.Route) []*dhcpv4.Route {
	var out []*dhcpv4.Route
	for _, r := range in {
		to := &dhcpv4.Route{
			Dest:   &net.IPNet{IP: r.Destination.Addr().AsSlice(), Mask: net.CIDRMask(r.Destination.Bits(), 32)},
			Router: net.IPv4zero, // On the link (RFC 3442).
		}
		if r.Gateway.IsValid() {
			to.Router = r.Gateway.AsSlice()
		}
		out = append(out, to)
	}
	return out
}

// reply is an answer with the options, or nil if the request allows none.
func reply(m *dhcpv4.DHCPv4, t dhcpv4.MessageType, options ...dhcpv4.Option) *dhcpv4.DHCPv4 {
	a, err := dhcpv4.NewReplyFromRequest(m, dhcpv4.WithMessageType(t))
	if err != nil {
		return nil
	}
	if t == dhcpv4.MessageTypeAck {
		a.ClientIPAddr = m.ClientIPAddr
	}
	for _, o := range options {
		a.UpdateOption(o)
	}
	return a
}

func unset(ip net.IP) bool { return ip == nil || ip.IsUnspecified() }

func is(ip net.IP, a netip.Addr) bool {
	got, ok := netip.AddrFromSlice(ip)
	return ok && got.Unmap() == a
}
