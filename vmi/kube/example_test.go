package kube_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi/kube"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func Example() {
	// What an operator has: the placement of some pods.
	placement := corev1.PodSpec{
		Tolerations: []corev1.Toleration{{Key: "machines", Operator: corev1.TolerationOpExists}},
	}
	v := vmitest.New()
	v.Spec.Tolerations = kube.FromTolerations(placement.Tolerations)
	v.Spec.Affinity = kube.FromAffinity(placement.Affinity)
	fmt.Println(v.Spec.Tolerations[0].Key, v.Spec.Tolerations[0].Operator, v.Spec.Affinity == nil)
	// Output:
	// machines Exists true
}
