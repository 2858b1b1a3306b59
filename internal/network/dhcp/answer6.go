package dhcp

import (
	"net"
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
	"github.com/insomniacslk/dhcp/rfc1035label"

	"github.com/podvisor/podvisor/network"
)

// answer6 returns the reply to the guest's message, or nil if there is none
// (RFC 8415, 18.3).
func answer6(o network.Offer6, r Resolver, m *dhcpv6.Message) *dhcpv6.Message {
	own := serverID(o)
	if own == nil || m.Options.ClientID() == nil && m.Type() != dhcpv6.MessageTypeInformationRequest {
		return nil
	}
	named := m.Options.ServerID()
	toAnother := named != nil && !named.Equal(own)
	switch m.Type() {
	case dhcpv6.MessageTypeSolicit:
		if named != nil {
			return nil
		}
		if m.GetOneOption(dhcpv6.OptionRapidCommit) != nil {
			a := assign(o, r, m, dhcpv6.MessageTypeReply)
			a.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionRapidCommit})
			return a
		}
		return assign(o, r, m, dhcpv6.MessageTypeAdvertise)
	case dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeRenew:
		if named == nil || toAnother {
			return nil
		}
		return assign(o, r, m, dhcpv6.MessageTypeReply)
	case dhcpv6.MessageTypeRebind:
		if named != nil {
			return nil
		}
		return assign(o, r, m, dhcpv6.MessageTypeReply)
	case dhcpv6.MessageTypeConfirm:
		if named != nil {
			return nil
		}
		return confirm(o, m)
	case dhcpv6.MessageTypeInformationRequest:
		if toAnother {
			return nil
		}
		return inform6(reply6(o, m, dhcpv6.MessageTypeReply), o, r)
	case dhcpv6.MessageTypeRelease, dhcpv6.MessageTypeDecline:
		// No lease is stored that could be freed, and there is no other address.
		if named == nil || toAnother {
			return nil
		}
		return reply6(o, m, dhcpv6.MessageTypeReply, &dhcpv6.OptStatusCode{StatusCode: iana.StatusSuccess})
	default:
		return nil
	}
}

// serverID is what names this server: the same for every guest behind a gateway with
// the same MAC, so that a guest that migrates finds it unchanged.
func serverID(o network.Offer6) dhcpv6.DUID {
	mac, err := net.ParseMAC(o.RouterMAC)
	if err != nil {
		return nil
	}
	return &dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: mac}
}

// reply6 is an answer with the options.
func reply6(o network.Offer6, m *dhcpv6.Message, t dhcpv6.MessageType, options ...dhcpv6.Option) *dhcpv6.Message {
	a := &dhcpv6.Message{MessageType: t, TransactionID: m.TransactionID}
	if id := m.Options.ClientID(); id != nil {
		a.AddOption(dhcpv6.OptClientID(id))
	}
	a.AddOption(dhcpv6.OptServerID(serverID(o)))
	for _, option := range options {
		a.AddOption(option)
	}
	return a
}

// mostIdentities is how many identities of a message are answered. A client has one
// for each interface.
const mostIdentities = 4

// assign gives the guest its address, under the first identity that it has. There is
// none for other identities.
func assign(o network.Offer6, r Resolver, m *dhcpv6.Message, t dhcpv6.MessageType) *dhcpv6.Message {
	a := reply6(o, m, t)
	for n, ia := range m.Options.IANA() {
		if n == mostIdentities {
			break
		}
		out := &dhcpv6.OptIANA{IaId: ia.IaId, T1: forever, T2: forever}
		if n > 0 {
			out.T1, out.T2 = 0, 0
			out.Options.Add(&dhcpv6.OptStatusCode{StatusCode: iana.StatusNoAddrsAvail, StatusMessage: "the interface has one address"})
			a.AddOption(out)
			continue
		}
		out.Options.Add(&dhcpv6.OptIAAddress{IPv6Addr: o.Address.Addr().AsSlice(), PreferredLifetime: forever, ValidLifetime: forever})
		for k, other := range ia.Options.Addresses() {
			// The guest drops an address without a lifetime, such as one of another server.
			if k < mostIdentities && !is6(other.IPv6Addr, o.Address.Addr()) && other.IPv6Addr.To16() != nil {
				out.Options.Add(&dhcpv6.OptIAAddress{IPv6Addr: other.IPv6Addr})
			}
		}
		a.AddOption(out)
	}
	return inform6(a, o, r)
}

// confirm says whether the addresses that the guest has are right here. Without any
// there is no answer.
func confirm(o network.Offer6, m *dhcpv6.Message) *dhcpv6.Message {
	asked, status := false, iana.StatusSuccess
	for _, ia := range m.Options.IANA() {
		for _, a := range ia.Options.Addresses() {
			asked = true
			if !is6(a.IPv6Addr, o.Address.Addr()) {
				status = iana.StatusNotOnLink
			}
		}
	}
	if !asked {
		return nil
	}
	return reply6(o, m, dhcpv6.MessageTypeReply, &dhcpv6.OptStatusCode{StatusCode: status})
}

// inform6 adds everything but an address.
func inform6(a *dhcpv6.Message, o network.Offer6, r Resolver) *dhcpv6.Message {
	r = r.under(o.Subdomain)
	if servers := r.servers6(); len(servers) > 0 {
		a.AddOption(dhcpv6.OptDNS(servers...))
	}
	if len(r.Search) > 0 {
		a.AddOption(dhcpv6.OptDomainSearchList(&rfc1035label.Labels{Labels: r.Search}))
	}
	return a
}

func is6(ip net.IP, a netip.Addr) bool {
	got, ok := netip.AddrFromSlice(ip)
	return ok && got == a
}
