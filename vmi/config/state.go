package config

import (
	"cmp"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// State is which configuration is in force, and why. The zero value is that of a
// cluster without a KubeVirt.
type State struct {
	// Config is in force.
	Config Config
	// KubeVirt is the object that counts. It is shared: do not change it. Nil:
	// there is none.
	KubeVirt *vmi.KubeVirt
	// InForce is what Config was made of. Nil: nothing, it is the default one.
	InForce *vmi.KubeVirtConfiguration
	// Generation is that of the KubeVirt which InForce was taken from.
	Generation int64
	// Faults are why the configuration of KubeVirt is not in force, if it is
	// not.
	Faults field.ErrorList
}

// InForce says which of the objects is the cluster's configuration: the oldest,
// and of those of the same second the first by namespace and name. So all
// processes that see the same objects take the same one. It is nil if there is
// none.
func InForce(all []*vmi.KubeVirt) *vmi.KubeVirt {
	if len(all) == 0 {
		return nil
	}
	return slices.MinFunc(all, func(a, b *vmi.KubeVirt) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// NextState is which configuration is in force after the last one, given all the
// objects that there are now. One that cannot be used leaves in force what was:
// what this process knows of, or what the object's status says, which outlives
// the process.
func NextState(last State, all []*vmi.KubeVirt) State {
	k := InForce(all)
	if k == nil {
		return State{}
	}
	c, faults := Resolve(k)
	if len(faults) == 0 {
		return State{Config: c, KubeVirt: k, InForce: &k.Spec.Configuration, Generation: k.Generation}
	}
	s := State{KubeVirt: k, Faults: faults}
	own := last.KubeVirt != nil && last.KubeVirt.UID == k.UID && last.InForce != nil
	if o := k.Status.ObservedGeneration; own && (o == nil || *o < last.Generation) {
		s.Config, s.InForce, s.Generation = last.Config, last.InForce, last.Generation
		return s
	}
	if before, ok := recorded(k); ok {
		s.InForce, s.Generation = before, *k.Status.ObservedGeneration
		s.Config, _ = Resolve(&vmi.KubeVirt{Spec: vmi.KubeVirtSpec{Configuration: *before}})
	}
	return s
}

// recorded is the configuration that the status says is in force, if it can be
// used.
func recorded(k *vmi.KubeVirt) (*vmi.KubeVirtConfiguration, bool) {
	var c vmi.KubeVirtConfiguration
	s := &k.Status
	if s.ObservedGeneration == nil || s.ObservedDeploymentConfig == "" || json.Unmarshal([]byte(s.ObservedDeploymentConfig), &c) != nil {
		return nil, false
	}
	if _, faults := Resolve(&vmi.KubeVirt{Spec: vmi.KubeVirtSpec{Configuration: c}}); len(faults) > 0 {
		return nil, false
	}
	return &c, true
}
