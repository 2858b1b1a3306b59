package serve

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/validate"
)

// completeInstance applies the defaults, with the finalizer, which would cost a
// write later. The status that a user sends is not stored.
func completeInstance(c cluster, v *vmi.VirtualMachineInstance) *vmi.VirtualMachineInstance {
	v = v.DeepCopy()
	v.Status = vmi.VirtualMachineInstanceStatus{}
	return defaults.Apply(v, c.Defaults)
}

func sameInstance(c cluster, a, b *vmi.VirtualMachineInstance) bool {
	return equality.Semantic.DeepEqual(defaults.Apply(a, c.Defaults).Spec, defaults.Apply(b, c.Defaults).Spec)
}

// checkInstance validates a machine that is made. Who may write labels that are
// reserved is a policy's to say, which knows the user's token; that the spec is
// not changed is a rule of the schema. So a machine that is there already keeps
// what the cluster allowed when it was made: it must stay possible to label it
// and to remove its finalizer.
func checkInstance(c cluster, v, before *vmi.VirtualMachineInstance) field.ErrorList {
	if before != nil {
		return validate.Spec(field.NewPath("spec"), &v.Spec, c.Limits.Existing())
	}
	return validate.Instance(v, validate.User{Kind: validate.Controller}, c.Limits)
}
