package scheduler

import (
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/kinds"
)

// GuestKinds are the definitions of the served kinds whose objects run guests, or make others that
// do, those that make others first. Podvisor is not deleted while there are any.
func GuestKinds() []vmi.Definition {
	var out []vmi.Definition
	for _, k := range kinds.All() {
		if k.RunsGuests() && k.Served() {
			out = append(out, k.Definition)
		}
	}
	return out
}
