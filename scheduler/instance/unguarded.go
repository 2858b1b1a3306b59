package instance

import (
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// unguarded removes the finalizer while Podvisor may be deleted under the VMI: after
// that nothing could remove it, and the definition of VMIs would wait for it for
// ever. Without it, the deletion of the VMI has the garbage collector delete the
// pod, and the kubelet asks the guest to power off.
func unguarded() scheduler.Plan {
	return scheduler.Plan{Actions: []scheduler.Action{scheduler.RemoveFinalizer{Finalizer: vmi.Finalizer}}}
}
