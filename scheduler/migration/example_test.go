package migration_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/migration"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func ExampleDecide() {
	v := vmitest.New(vmitest.WithName("web"))
	source, err := pod.Render(v, pod.Config{Launcher: pod.Launcher{Image: "example/virt-launcher:v1"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	source.UID, source.Spec.NodeName, source.Status.Phase = "p1", "node1", corev1.PodRunning
	v.Status.Phase, v.Status.NodeName, v.Status.ActivePods = vmi.PhaseRunning, "node1", map[types.UID]string{"p1": "node1"}

	m := &vmi.VirtualMachineInstanceMigration{}
	m.Namespace, m.Name, m.UID, m.Spec.VMIName = v.Namespace, "move", "m1", "web"
	o := migration.Observed{Migration: m, VMI: v, Pods: []*corev1.Pod{source},
		Config: pod.Config{Launcher: pod.Launcher{Image: "example/virt-launcher:v2"}}, Now: time.Now()}

	o.Turn = len(migration.MayBegin([]migration.Place{migration.PlaceOf(m, v)}, migration.Limits{})) > 0
	for _, a := range migration.Decide(o).Actions {
		if c, ok := a.(scheduler.CreatePod); ok {
			fmt.Println("create a pod with", c.Pod.Spec.Containers[0].Image)
		}
	}
	// Output:
	// create a pod with example/virt-launcher:v2
}
