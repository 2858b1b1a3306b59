package serve

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/validate"
)

// completeInstance applies the defaults and adds the finalizer, which costs a
// write later if it is not there now.
//
// Only fields of the served schema are completed. The API server would store
// others too and drop them whenever the machine is read, so that the next write
// of what was read would be a change.
func completeInstance(v *vmi.VirtualMachineInstance) *vmi.VirtualMachineInstance {
	done := defaults.Apply(v, defaults.Profile{})
	v = v.DeepCopy()
	v.Spec.Volumes, v.Spec.Networks = done.Spec.Volumes, done.Spec.Networks
	v.Spec.Domain.Devices.Disks = done.Spec.Domain.Devices.Disks
	v.Spec.Domain.Devices.Interfaces = done.Spec.Domain.Devices.Interfaces
	if c := done.Spec.Domain.CPU; c != nil {
		v.Spec.Domain.CPU = &vmi.CPU{Cores: c.Cores, Sockets: c.Sockets, Threads: c.Threads}
	}
	if m := done.Spec.Domain.Memory; m != nil {
		v.Spec.Domain.Memory = &vmi.Memory{Guest: m.Guest}
	}
	if !slices.Contains(v.Finalizers, vmi.Finalizer) && v.DeletionTimestamp == nil {
		v.Finalizers = append(v.Finalizers, vmi.Finalizer)
	}
	return v
}

func sameInstance(a, b *vmi.VirtualMachineInstance) bool {
	return equality.Semantic.DeepEqual(defaults.Apply(a, defaults.Profile{}).Spec, defaults.Apply(b, defaults.Profile{}).Spec)
}

// checkInstance validates a machine that is made. Who may write labels that are
// reserved is a policy's to say, which knows the user's token; that the spec is
// not changed is a rule of the schema.
func checkInstance(v, before *vmi.VirtualMachineInstance) field.ErrorList {
	by, limits := validate.User{Kind: validate.Controller}, validate.Limits{}
	if before != nil {
		return validate.Spec(field.NewPath("spec"), &v.Spec, limits)
	}
	return validate.Instance(v, by, limits)
}
