package instance

import (
	"fmt"
	"strings"
	"time"

	"github.com/podvisor/podvisor/network/cni"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// Times between two looks at a NetworkAttachmentDefinition that a VMI waits for: they
// grow with the time for which the VMI has waited.
const (
	leastLook = 2 * time.Second
	mostLook  = time.Minute
)

// undefinedNetworks says which networks of the VMI are not defined, or not so that a pod
// can ask for what they need.
func undefinedNetworks(o Observed) (vmi.Finding, bool) {
	names := cni.Definitions(o.VMI)
	var missing, wrong []string
	for _, n := range o.VMI.Spec.Networks {
		d, ok := o.Definitions[n.Name]
		switch at := names[n.Name]; {
		case !ok:
		case d == nil:
			missing = append(missing, fmt.Sprintf("network %s: NetworkAttachmentDefinition %s does not exist in namespace %s", n.Name, at.Name, at.Namespace))
		case d.Resource != "" && cni.ResourceFault(d.Resource) != "":
			wrong = append(wrong, fmt.Sprintf("network %s: the annotation %s of NetworkAttachmentDefinition %s in namespace %s: %s",
				n.Name, cni.ResourceAnnotation, at.Name, at.Namespace, cni.ResourceFault(d.Resource)))
		}
	}
	switch {
	case len(missing) > 0:
		return vmi.Finding{Reason: noNetworkFound, Message: strings.Join(missing, "; ") + ": create it, and the VMI starts"}, true
	case len(wrong) > 0:
		return vmi.Finding{Reason: NetworkResourceInvalid, Message: strings.Join(wrong, "; ") + ": correct it, and the VMI starts"}, true
	}
	return vmi.Finding{}, false
}

// waitForDefinitions says why there is no pod, and looks again: nothing reports that a
// definition has changed.
func waitForDefinitions(o Observed, f vmi.Finding) scheduler.Plan {
	p := pending(o, f)
	p.Recheck = leastLook
	if c := o.VMI.Status.Condition(vmi.ConditionSynchronized); c != nil && c.Reason == f.Reason {
		p.Recheck = min(max(o.Now.Sub(c.LastTransitionTime.Time)/2, leastLook), mostLook)
	}
	return p
}
