package serve

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/validate"
)

// completeInstance applies the defaults and adds the finalizer, which costs a
// write later if it is not there now.
//
// Only fields of the served schema are completed. The API server would store
// others too and drop them whenever the machine is read, so that the next write
// of what was read would be a change.
func completeInstance(c config.Config, v *vmi.VirtualMachineInstance) *vmi.VirtualMachineInstance {
	done := defaults.Apply(v, c.Defaults)
	v = v.DeepCopy()
	v.Spec.Volumes, v.Spec.Networks = done.Spec.Volumes, done.Spec.Networks
	v.Spec.EvictionStrategy = done.Spec.EvictionStrategy
	v.Spec.Domain.Devices.Disks = done.Spec.Domain.Devices.Disks
	v.Spec.Domain.Devices.Interfaces = done.Spec.Domain.Devices.Interfaces
	if n := done.Spec.Domain.CPU; n != nil {
		v.Spec.Domain.CPU = &vmi.CPU{Cores: n.Cores, Sockets: n.Sockets, Threads: n.Threads}
	}
	if m := done.Spec.Domain.Memory; m != nil {
		v.Spec.Domain.Memory = &vmi.Memory{Guest: m.Guest}
	}
	if !slices.Contains(v.Finalizers, vmi.Finalizer) && v.DeletionTimestamp == nil {
		v.Finalizers = append(v.Finalizers, vmi.Finalizer)
	}
	return v
}

func sameInstance(c config.Config, a, b *vmi.VirtualMachineInstance) bool {
	return equality.Semantic.DeepEqual(defaults.Apply(a, c.Defaults).Spec, defaults.Apply(b, c.Defaults).Spec)
}

// checkInstance validates a machine that is made. Who may write labels that are
// reserved is a policy's to say, which knows the user's token; that the spec is
// not changed is a rule of the schema. So a machine that is there already keeps
// what the cluster allowed when it was made: it must stay possible to label it
// and to remove its finalizer.
func checkInstance(c config.Config, v, before *vmi.VirtualMachineInstance) field.ErrorList {
	limits := c.Limits
	if before != nil {
		limits.NoBridgeOnPodNetwork = false
		return validate.Spec(field.NewPath("spec"), &v.Spec, limits)
	}
	return validate.Instance(v, validate.User{Kind: validate.Controller}, limits)
}
