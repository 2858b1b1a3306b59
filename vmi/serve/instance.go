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
	v = defaults.Apply(v)
	if !slices.Contains(v.Finalizers, vmi.Finalizer) && v.DeletionTimestamp == nil {
		v.Finalizers = append(v.Finalizers, vmi.Finalizer)
	}
	return v
}

func sameInstance(a, b *vmi.VirtualMachineInstance) bool {
	return equality.Semantic.DeepEqual(defaults.Apply(a).Spec, defaults.Apply(b).Spec)
}

// checkInstance validates the spec. That it is not changed is a rule of the
// schema.
func checkInstance(v, _ *vmi.VirtualMachineInstance) field.ErrorList {
	return validate.Spec(field.NewPath("spec"), &v.Spec)
}
