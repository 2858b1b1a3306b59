package instance_test

import (
	"fmt"
	"time"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func ExampleDecide() {
	plan := instance.Decide(instance.Observed{
		VMI:    vmitest.New(vmitest.WithName("web")),
		Config: pod.Config{Launcher: pod.Launcher{Image: "example/virt-launcher:v1"}},
		Now:    time.Now(),
	})
	for _, a := range plan.Actions {
		switch a := a.(type) {
		case scheduler.CreatePod:
			fmt.Println("create", a.Pod.Name)
		case scheduler.WriteStatus[*vmi.VirtualMachineInstance]:
			fmt.Println("phase", a.Object.Status.Phase)
		default:
			fmt.Printf("%T\n", a)
		}
	}
	// Output:
	// scheduler.AddFinalizer
	// create virt-launcher-web-nlr65
	// scheduler.Emit
}

func ExampleEviction() {
	v := vmitest.New(vmitest.WithName("web"))
	p, err := pod.Render(v, pod.Config{Launcher: pod.Launcher{Image: "example/virt-launcher:v1"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%q\n", instance.Eviction(v, p, defaults.Profile{}).Refusal)
	fmt.Println(instance.Eviction(v, p, defaults.Profile{EvictionStrategy: vmi.EvictionLiveMigrate}).Refusal != "")
	// Output:
	// ""
	// true
}
