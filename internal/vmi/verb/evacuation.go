package verb

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/jsonpatch"
	"github.com/podvisor/podvisor/vmi"
)

const cancelEvacuation = "evacuate/cancel"

// evacuation are the verbs about a node that a VMI is to leave.
var evacuation = []Verb{
	{Resource: VMs, Subresource: cancelEvacuation, Method: Put, Code: done, Role: Edit, Body: Options, Reads: []Source{VM, VMI, Node}, Decide: cancelOfVM},
	{Resource: VMIs, Subresource: cancelEvacuation, Method: Put, Code: done, Role: Edit, Body: Options, Reads: []Source{VMI, Node}, Decide: cancelOfVMI},
}

// NodeOf is the node that a decision with the source [Node] reads. Empty: none.
func NodeOf(v *vmi.VirtualMachineInstance) string {
	switch {
	case v == nil:
		return ""
	case v.Status.EvacuationNodeName != "":
		return v.Status.EvacuationNodeName
	}
	return v.Status.NodeName
}

// ofVMI says whether there is the VMI, and ofVM whether it is the one that the VM has made.
func ofVMI(o Observed) error {
	if o.VMI == nil {
		return noVMI(o)
	}
	return nil
}

func ofVM(o Observed) error {
	switch {
	case o.VM == nil:
		return noVM(o)
	case o.VMI == nil, !o.VM.Status.Created:
		return conflict(OfVM, o.Name, "VMI is not started")
	case !metav1.IsControlledBy(o.VMI, o.VM):
		return internal("VMI %s is not of VM %s: delete one of them", o.VMI.Name, o.VM.Name)
	}
	return nil
}

func cancelOfVM(o Observed) (Plan, error)  { return cancel(o, ofVM) }
func cancelOfVMI(o Observed) (Plan, error) { return cancel(o, ofVMI) }

func cancel(o Observed, owned func(Observed) error) (Plan, error) {
	if err := owned(o); err != nil {
		return Plan{}, err
	}
	var opts vmi.EvacuateCancelOptions
	if err := decode(o.Body, &opts); err != nil {
		return Plan{}, err
	}
	if _, err := dry(opts.DryRun); err != nil {
		return Plan{}, err
	}
	for _, t := range o.Taints {
		if t.Key == o.Drain && t.Effect == corev1.TaintEffectNoSchedule {
			return Plan{}, bad("node %s has NodeDrainTaintKey %s: remove the taint first", NodeOf(o.VMI), t.Key)
		}
	}
	switch node := o.VMI.Status.EvacuationNodeName; {
	case node == "":
		return Plan{}, nil
	case node != opts.EvacuationNodeName:
		return Plan{}, conflict(OfVMI, o.Name, "it is to leave node %s, and evacuationNodeName is %q; name that node", node, opts.EvacuationNodeName)
	}
	const at = "/status/evacuationNodeName"
	operations := []jsonpatch.Operation{jsonpatch.Test(at, opts.EvacuationNodeName), jsonpatch.Remove(at)}
	return Plan{Patches: []Patch{patchVMI(o.VMI, opts.DryRun, operations, ofStatus)}}, nil
}
