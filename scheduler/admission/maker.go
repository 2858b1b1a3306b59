package admission

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/scheduler/replicaset"
	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/instancetype"
	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/validate"
)

// makers are the kinds whose objects make VMIs.
var makers = []maker{
	makes(vmi.VirtualMachines, sized, func(o *vmi.VirtualMachine, made *vmi.VirtualMachineInstance, p decided) *vmi.VirtualMachineInstance {
		if made.Name != o.Name {
			return nil
		}
		return vm.Instance(o, p.Profile, p.Bindings)
	}),
	makes(vmi.VirtualMachineInstanceReplicaSets, nil, func(o *vmi.VirtualMachineInstanceReplicaSet, made *vmi.VirtualMachineInstance, _ decided) *vmi.VirtualMachineInstance {
		if !hasName(o, made.Name) {
			return nil
		}
		return replicaset.Instance(o, made.Name, 0)
	}),
}

// hasName says that a VMI of the set may have the name. It looks at the first 10,000 places:
// a set that leaves more than that to VMIs that are being deleted waits for these.
func hasName(s *vmi.VirtualMachineInstanceReplicaSet, name string) bool {
	for i := range 10_000 {
		if replicaset.Name(s, i) == name {
			return true
		}
	}
	return false
}

// decided is what the VMI depends on besides its owner.
type decided struct {
	defaults.Profile
	Bindings []network.Binding
	// Lookup reads what VMs name.
	Lookup instancetype.Lookup
}

// maker is a kind whose objects make VMIs.
type maker struct {
	kind schema.GroupKind
	// asked are the owner as the API server has it, and the VMI of the name of made that
	// it asks for, or nil.
	asked func(ctx context.Context, c *client.Client, name string, made *vmi.VirtualMachineInstance, p decided) (metav1.Object, *vmi.VirtualMachineInstance, error)
}

// makes is the maker of a kind whose objects ask for what asked returns. It is asked of
// objects with a template only, as become makes them. Nil: they are as they are stored.
func makes[T vmi.Object, L runtime.Object](d vmi.DefinitionOf[T, L], become func(owner T, made *vmi.VirtualMachineInstance, p decided) (T, error),
	asked func(owner T, made *vmi.VirtualMachineInstance, p decided) *vmi.VirtualMachineInstance) maker {
	return maker{d.GroupKind(), func(ctx context.Context, c *client.Client, name string,
		made *vmi.VirtualMachineInstance, p decided) (metav1.Object, *vmi.VirtualMachineInstance, error) {
		owner, err := client.Of(c, d, made.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, nil, err
		}
		k, _ := kinds.Find(d.GroupKind())
		t := k.Template(owner)
		if t == nil {
			return owner, nil, nil
		}
		if become != nil {
			if owner, err = become(owner, made, p); err != nil {
				return owner, nil, err
			}
			t = k.Template(owner)
		}
		keep(made, t)
		return owner, asked(owner, made, p), nil
	}}
}

// sized is the VM with what it names, as the VMI was started with it: by the start revision,
// which is made before the VMI.
func sized(v *vmi.VirtualMachine, made *vmi.VirtualMachineInstance, p decided) (*vmi.VirtualMachine, error) {
	if len(instancetype.References(v)) == 0 {
		return v, nil
	}
	r, err := p.Lookup.Revision(v.Namespace, vmi.StartRevision(v.UID, made.RevisionGeneration()))
	if err != nil {
		return v, err
	}
	found, err := p.Lookup.Find(v.Namespace, instancetype.References(vm.Pinned(v, r)))
	if err != nil {
		return v, err
	}
	out, conflicts := vm.Expanded(v, found, p.Profile)
	return out, validate.Error(conflicts)
}

// makerOf is the maker of the kind that the reference names. False: it is of no kind that
// makes VMIs.
func makerOf(ref metav1.OwnerReference) (maker, bool) {
	gv, _ := schema.ParseGroupVersion(ref.APIVersion) // none is of no maker
	for _, m := range makers {
		if m.kind == gv.WithKind(ref.Kind).GroupKind() {
			return m, true
		}
	}
	return maker{}, false
}

// keep gives the template, where it leaves that open, what the configuration of the
// cluster decided when the VMI was made: this replica may have another one by now.
func keep(made *vmi.VirtualMachineInstance, t *vmi.VirtualMachineInstanceTemplateSpec) {
	made = made.DeepCopy()
	for i := range made.Spec.Domain.Devices.Interfaces {
		made.Spec.Domain.Devices.Interfaces[i].MacAddress = "" // it follows from the owner
	}
	t.Spec = defaults.Keep(made, &vmi.VirtualMachineInstance{Spec: t.Spec}).Spec
}
