package manifest

import (
	"errors"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/kinds"
)

// Instances are the VMIs of a manifest in their order, complete, as [Object.Instance]
// returns them. Objects that are none and make none are left out. The error joins
// everything that the API server of a cluster c refuses in the manifest, a line for
// each, and wraps [vmi.ErrInvalid]; then there are no VMIs.
func Instances(data []byte, c kinds.Cluster) ([]*vmi.VirtualMachineInstance, error) {
	objects, err := Check(data, c)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, vmi.ErrInvalid)
	}
	var all []*vmi.VirtualMachineInstance
	var faults []error
	for _, o := range objects {
		for _, f := range o.Faults {
			faults = append(faults, fmt.Errorf("%s: %s%w", o, f, invalid))
		}
		for _, f := range o.Unserved {
			faults = append(faults, fmt.Errorf("%s: %s%w", o, f, invalid))
		}
		if v := o.Instance(c); v != nil {
			all = append(all, v)
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return all, nil
}

// invalid wraps [vmi.ErrInvalid] and adds nothing to a text: each line has its type.
var invalid = silent{}

type silent struct{}

func (silent) Error() string { return "" }
func (silent) Unwrap() error { return vmi.ErrInvalid }

// Instance is the VMI that the object is, or that a cluster c makes of its template,
// complete. It is in the namespace default if the object names none, and has a UID
// that follows from namespace and name. Nil: there is none, or the object is not
// complete.
func (o Object) Instance(c kinds.Cluster) *vmi.VirtualMachineInstance {
	var v *vmi.VirtualMachineInstance
	if of, ok := o.Complete.(*vmi.VirtualMachineInstance); ok {
		v = of.DeepCopy()
	} else if t := o.template(); t != nil {
		v = made(o.Complete, t)
	}
	if v == nil {
		return nil
	}
	if v.Namespace == "" {
		v.Namespace = metav1.NamespaceDefault
	}
	if v.UID == "" {
		v.UID = defaults.UUID(types.UID(v.Namespace + "/" + v.Name))
	}
	return defaults.Instance(v, c.Defaults)
}

// template is the template of VMIs that the object has, or that of its VMs, or nil.
func (o Object) template() *vmi.VirtualMachineInstanceTemplateSpec {
	k, _ := kinds.Find(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind())
	if o.Complete == nil {
		return nil
	}
	switch {
	case k.Template != nil:
		return k.Template(o.Complete)
	case k.VM != nil:
		if v := k.VM(o.Complete); v != nil {
			return v.Spec.Template
		}
	}
	return nil
}

// made is the VMI of a template.
func made(o vmi.Object, t *vmi.VirtualMachineInstanceTemplateSpec) *vmi.VirtualMachineInstance {
	name := o.GetName()
	if name == "" {
		name = o.GetGenerateName()
	}
	return &vmi.VirtualMachineInstance{
		TypeMeta: metav1.TypeMeta{APIVersion: vmi.VirtualMachineInstances.GroupVersion().String(), Kind: vmi.VirtualMachineInstances.Kind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.GetNamespace(), Name: name,
			Labels: maps.Clone(t.ObjectMeta.Labels), Annotations: maps.Clone(t.ObjectMeta.Annotations),
		},
		Spec: *t.Spec.DeepCopy(),
	}
}
