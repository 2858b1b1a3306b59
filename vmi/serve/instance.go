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
func completeInstance(v *vmi.VirtualMachineInstance) *vmi.VirtualMachineInstance {
	v = defaults.Apply(v, defaults.Profile{})
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
