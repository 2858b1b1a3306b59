package network

import (
	"fmt"
	"net/netip"
	"strings"
)

// Way is how a program in the pod connects to the guest, and to nothing else: by a link that
// leads to the guest alone, from an address that the pod has on it. The handler makes it when
// it binds the interface. No status and no name that a tenant chooses is part of it.
type Way struct {
	// Link is the link in the pod's namespace that leads to the guest. A connection is bound
	// to it: an address that the pod itself has, or a route, leads it nowhere else.
	Link string `json:"link"`
	// From is the pod's address on that link, and To is the guest's.
	From netip.Addr `json:"from"`
	To   netip.Addr `json:"to"`
	// Ports are those that are the guest's. Empty: all of them.
	Ports []Port `json:"ports,omitempty"`
}

// Leads reports why the port of a protocol, tcp or udp, is none of the guest's.
func (w Way) Leads(protocol string, port uint16) error {
	if len(w.Ports) == 0 {
		return nil
	}
	for _, p := range w.Ports {
		if strings.EqualFold(p.Protocol, protocol) && p.Number <= port && port <= max(p.Number, p.Last) {
			return nil
		}
	}
	return fmt.Errorf("port %d of %s is none of the ports that the spec lists for the interface: add it there", port, protocol)
}

// WayOf is the way by the interface that has the pod network. Nil: there is none.
func WayOf(all []Attachment) *Way {
	for _, a := range all {
		if a.Way != nil {
			return a.Way
		}
	}
	return nil
}

func (w Way) write(b *strings.Builder) {
	fmt.Fprintf(b, "  reached on %s at %s from %s\n", w.Link, w.To, w.From)
}
