package verb

import (
	"encoding/json"
	"errors"

	"github.com/podvisor/podvisor/internal/vmi/bounds"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/instancetype"
	"github.com/podvisor/podvisor/vmi/validate"
)

// expansion are the verbs that answer with a VM and its defaults.
var expansion = []Verb{
	{Resource: VMs, Subresource: "expand-spec", Method: Get, Code: done, Role: View, Reads: []Source{VM}, Decide: expandStored},
	{Resource: Expand, Method: Put, Code: done, Role: View, Body: Object, Decide: expandGiven},
}

// expanded is the VM with what its instance type and its preference say, and with all
// defaults. It names neither. The error says why it cannot be.
func expanded(v *vmi.VirtualMachine, o Observed) (*vmi.VirtualMachine, error) {
	v, faults, err := o.Lookup.Infer(o.Namespace, v)
	switch {
	case err != nil:
		return nil, err
	case len(faults) > 0:
		return nil, validate.Error(faults)
	}
	found, err := o.Lookup.Find(o.Namespace, instancetype.References(v))
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		if f.Object == nil {
			return nil, errors.New(f.Missing)
		}
	}
	t, p := instancetype.SpecsOf(found)
	v, conflicts := instancetype.Expand(v, t, p, o.Defaults)
	if len(conflicts) > 0 {
		return nil, validate.Error(conflicts)
	}
	v.APIVersion, v.Kind = vmi.VirtualMachines.GroupVersion().String(), vmi.VirtualMachines.Kind
	if v.Spec.Template != nil {
		v.Spec.Template.Spec = *defaults.Spec(&v.Spec.Template.Spec, o.Defaults)
	}
	return v, nil
}

func expandStored(o Observed) (Plan, error) {
	if o.VM == nil {
		return Plan{}, noVM(o)
	}
	out, err := expanded(o.VM, o)
	if err != nil {
		return Plan{}, internal("%w", err)
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
	out, err := expanded(&v, o)
	if err != nil {
		return Plan{}, bad("%v", err)
	}
	return Plan{Answer: out}, nil
}
