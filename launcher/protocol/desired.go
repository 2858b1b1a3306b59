package protocol

import (
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

// Desired is everything that the handler desires of a launcher. It is put as a
// whole, any number of times; putting what is in force already changes nothing.
type Desired struct {
	// Generation counts what was put: each Desired that differs from the one
	// before has a higher one. A launcher refuses a Desired with a lower
	// Generation than that in force: it was delayed. A handler that starts anew
	// continues from [State.Generation]. 0: sent by a handler that does not count;
	// it is never refused for its age.
	Generation int64 `json:"generation,omitempty"`
	// Instance is the VMI, with defaults applied. It must be the launcher's own. Of
	// its status there are the names, targets and claims of volumes, for a domain that
	// is yet to be created.
	Instance *vmi.VirtualMachineInstance `json:"instance"`
	// Interfaces are the VMI's interfaces as they are bound in the pod, one for
	// each interface in the spec.
	Interfaces []network.Attachment `json:"interfaces,omitempty"`
	// Settings are the cluster's for every launcher. What they say about the
	// domain takes effect when the domain is created.
	Settings config.Launcher `json:"settings,omitzero"`
	// Role is what the launcher's pod is for the VMI. A launcher that was a
	// [vmi.RoleTarget] once waits, and never creates a domain by itself: the domain
	// comes from another launcher. It is put so that a launcher of the release before,
	// which would create one, refuses it. Empty: the VMI runs in the pod.
	Role vmi.Role `json:"role,omitempty"`
	// Stop asks for the end of the domain. Nil: it shall run.
	Stop *Stop `json:"stop,omitempty"`
}

// Stop asks for the end of a domain.
type Stop struct {
	// GracePeriodSeconds is how long the guest may take to power off, counted
	// from the first Desired with a Stop. A later, shorter one counts.
	GracePeriodSeconds int64 `json:"gracePeriodSeconds"`
}
