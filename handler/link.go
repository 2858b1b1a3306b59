package handler

import (
	"slices"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// maxLinks is how many links a launcher may report: as many as a spec has interfaces.
const maxLinks = 256

// sanitizeLinks leaves out links that are neither up nor down.
func sanitizeLinks(all []protocol.Link) []protocol.Link {
	var out []protocol.Link
	for _, l := range all {
		known := l.State == string(vmi.InterfaceUp) || l.State == string(vmi.InterfaceDown)
		if len(out) < maxLinks && known && len(l.Name) <= maxMessage {
			out = append(out, l)
		}
	}
	return out
}

// linked gives the interfaces that were bound the states of their links in the domain.
// One that the launcher does not report has the state that it was bound with, and a
// device of the node has none.
func linked(bound []vmi.InterfaceStatus, links []protocol.Link) []vmi.InterfaceStatus {
	out := slices.Clone(bound)
	for n := range out {
		at := slices.IndexFunc(links, func(l protocol.Link) bool { return l.Name == out[n].Name })
		if at >= 0 && out[n].LinkState != "" {
			out[n].LinkState = links[at].State
		}
	}
	return out
}
