package capability

import (
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

// Offered says whether a node offers the resource to pods in a cluster with this
// configuration. The device for sockets between guests and their nodes is offered only
// with its feature gate: every pod may ask for what is offered.
func Offered(resource string, c config.Config) bool {
	return resource != vmi.VhostVSOCKResource || c.Limits.Features.VSOCK
}
