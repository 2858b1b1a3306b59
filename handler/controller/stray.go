package controller

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/vmi"
)

// strays are those of the pods, in each of which a launcher has a domain, that none of the
// VMIs runs in or moves to. A launcher gets a domain only after virt-controller has handed
// its VMI over to this node. So such a VMI has failed, is gone or runs elsewhere, as after
// the node was fenced: its guest must not run here beside the next one. The pods are to be
// looked for before the VMIs are listed, and that from the API server and no cache.
func strays(pods []types.UID, all []*vmi.VirtualMachineInstance, node string) []types.UID {
	known := map[types.UID]bool{}
	for _, v := range all {
		for _, p := range handler.Pods(v, node) {
			known[p.UID] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(pods), func(uid types.UID) bool { return known[uid] })
}
