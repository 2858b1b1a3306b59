package instance

import (
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// labelled gives the VMI the label with the node that its status names, or will. It is a write of
// its own: of an object whose status is a subresource, a write of the status leaves the
// metadata as it is. It comes before the status is handed over, so that it is there
// whenever the status names a node, and is no conflict for the handler.
func labelled(o Observed, node string) []scheduler.Action {
	if node == "" || o.VMI.Labels[vmi.NodeNameLabel] == node || isUnreadable(o) {
		return nil
	}
	return []scheduler.Action{scheduler.SetLabel{Key: vmi.NodeNameLabel, Value: node}}
}
