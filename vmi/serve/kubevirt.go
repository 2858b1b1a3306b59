package serve

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/validate"
)

// completeKubeVirt adds nothing: a configuration says what differs from the
// default one.
func completeKubeVirt(_ cluster, k *vmi.KubeVirt) *vmi.KubeVirt { return k }

// checkKubeVirt refuses a second one. One that cannot be used is not refused: it
// would be no other while nobody answers here, and its status says so.
func checkKubeVirt(c cluster, k, before *vmi.KubeVirt) field.ErrorList {
	if before != nil {
		return nil
	}
	if fault := validate.OnlyKubeVirt(k, c.kubevirts); fault != nil {
		return field.ErrorList{fault}
	}
	return nil
}
