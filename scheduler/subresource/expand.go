package subresource

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// expanded is the VM as it is without an instancetype: with all defaults.
func (s *Server) expanded(v *vmi.VirtualMachine) (*vmi.VirtualMachine, bool) {
	if v.Spec.Instancetype != nil || v.Spec.Preference != nil {
		return nil, false
	}
	v = v.DeepCopy()
	v.APIVersion, v.Kind = vmi.VirtualMachines.GroupVersion().String(), vmi.VirtualMachines.Kind
	if v.Spec.Template != nil {
		v.Spec.Template.Spec = *defaults.Spec(&v.Spec.Template.Spec, s.Defaults())
	}
	return v, true
}

const noInstancetypes = "spec.instancetype and spec.preference are not supported by this version; write what they say into spec.template"

func (s *Server) expandStored(ctx context.Context, r *request) (any, error) {
	v, err := s.vm(ctx, r)
	if err != nil {
		return nil, err
	}
	out, ok := s.expanded(v)
	if !ok {
		return nil, conflict(ofVM, v.Name, noInstancetypes)
	}
	return out, nil
}

func (s *Server) expandGiven(ctx context.Context, r *request) (any, error) {
	var v vmi.VirtualMachine
	leave, err := s.object(ctx, r, vmi.VirtualMachines.Kind, &v)
	if err != nil {
		return nil, err
	}
	defer leave()
	switch {
	case v.Spec.Template == nil:
		return nil, bad("Object is not a valid VirtualMachine: spec.template is required")
	case v.Kind != "" && v.Kind != vmi.VirtualMachines.Kind:
		return nil, bad("Object is not a valid VirtualMachine: its kind is %s", v.Kind)
	case v.Namespace != "" && v.Namespace != r.namespace:
		return nil, bad("VM namespace must be empty or %s", r.namespace)
	}
	out, ok := s.expanded(&v)
	if !ok {
		return nil, apierrors.NewBadRequest(noInstancetypes)
	}
	return out, nil
}
