package update_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/scheduler/update"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func Example() {
	v := vmitest.New(vmitest.WithName("web"), vmitest.WithPhase(vmi.PhaseRunning))
	v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionLiveMigratable, Status: corev1.ConditionTrue}, metav1.Now())
	o := update.Observed{Instances: []update.Instance{{VMI: v}}}
	fmt.Println(len(update.Decide(o).Steps))

	o.Updates = config.Updates{Migrate: true}
	for _, s := range update.Decide(o).Steps {
		fmt.Println(s.Action)
	}
	// Output:
	// 0
	// create migration kubevirt-workload-update-nlr659femg of VMI web
}
