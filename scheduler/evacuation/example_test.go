package evacuation_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler/evacuation"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func Example() {
	v := vmitest.New(vmitest.WithName("web"), vmitest.WithPhase(vmi.PhaseRunning))
	v.Spec.EvictionStrategy = new(vmi.EvictionLiveMigrate)
	v.Status.NodeName, v.Status.EvacuationNodeName = "n1", "n1"
	v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionLiveMigratable, Status: corev1.ConditionTrue}, metav1.Now())
	fmt.Println(evacuation.Decide(evacuation.Observed{VMI: v}))
	// Output: create migration kubevirt-evacuation-nlr659femg of VMI web
}
