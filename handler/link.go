package handler

import (
	"slices"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

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
