package verb

import (
	"encoding/json"

	"github.com/podvisor/podvisor/internal/vmi/bounds"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// expansion are the verbs that answer with a VM and its defaults.
var expansion = []Verb{
	{Resource: VMs, Subresource: "expand-spec", Method: Get, Code: done, Role: View, Reads: []Source{VM}, Decide: expandStored},
	{Resource: Expand, Method: Put, Code: done, Role: View, Body: Object, Decide: expandGiven},
}

const noInstancetypes = "spec.instancetype and spec.preference are not supported by this version; write what they say into spec.template"

// expanded is the VM as it is without an instancetype: with all defaults.
func expanded(v *vmi.VirtualMachine, p defaults.Profile) (*vmi.VirtualMachine, bool) {
	if v.Spec.Instancetype != nil || v.Spec.Preference != nil {
		return nil, false
	}
	v = v.DeepCopy()
	v.APIVersion, v.Kind = vmi.VirtualMachines.GroupVersion().String(), vmi.VirtualMachines.Kind
	if v.Spec.Template != nil {
		v.Spec.Template.Spec = *defaults.Spec(&v.Spec.Template.Spec, p)
	}
	return v, true
}

func expandStored(o Observed) (Plan, error) {
	if o.VM == nil {
		return Plan{}, noVM(o)
	}
	out, ok := expanded(o.VM, o.Defaults)
	if !ok {
		return Plan{}, conflict(OfVM, o.Name, noInstancetypes)
	}
	return Plan{Answer: out}, nil
}

func expandGiven(o Observed) (Plan, error) {
	var v vmi.VirtualMachine
	var err error
	if fault := bounds.Fault(vmi.VirtualMachines.Kind, o.Body); fault != nil {
		err = fault
	} else {
		err = json.Unmarshal(o.Body, &v)
	}
	switch {
	case err != nil:
		return Plan{}, bad("Object is not a valid %s: %v", vmi.VirtualMachines.Kind, err)
	case v.Spec.Template == nil:
		return Plan{}, bad("Object is not a valid VirtualMachine: spec.template is required")
	case v.Kind != "" && v.Kind != vmi.VirtualMachines.Kind:
		return Plan{}, bad("Object is not a valid VirtualMachine: its kind is %s", v.Kind)
	case v.Namespace != "" && v.Namespace != o.Namespace:
		return Plan{}, bad("VM namespace must be empty or %s", o.Namespace)
	}
	out, ok := expanded(&v, o.Defaults)
	if !ok {
		return Plan{}, bad(noInstancetypes)
	}
	return Plan{Answer: out}, nil
}
