package replicaset_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/replicaset"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func ExampleDecide() {
	set := vmitest.NewReplicaSet(2, vmitest.WithLabel("app", "web"))
	set.Name, set.UID = "web", "7c3e"
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	plan := replicaset.Decide(replicaset.Observed{Set: set, Now: time.Now()})
	for _, a := range plan.Actions {
		if c, ok := a.(scheduler.CreateInstance); ok {
			fmt.Println("create", c.Instance.Name)
		}
	}
	// Output:
	// create web-cndq7b
	// create web-xy5k66
}
