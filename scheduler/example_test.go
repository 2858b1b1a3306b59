package scheduler_test

import (
	"fmt"
	"time"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

func ExamplePlan() {
	p := scheduler.Plan{Recheck: time.Minute, Actions: []scheduler.Action{
		scheduler.DeletePod{Name: "virt-launcher-web-nlr65", UID: "8cc0b144"},
		scheduler.RemoveFinalizer{Finalizer: vmi.Finalizer},
	}}
	fmt.Println(p)
	for _, a := range p.Actions {
		if d, ok := a.(scheduler.DeletePod); ok {
			fmt.Println("the plan deletes", d.Name)
		}
	}
	// Output:
	// delete pod virt-launcher-web-nlr65 (8cc0b144)
	// remove finalizer kubevirt.io/foregroundDeleteVirtualMachine
	// decide again after 1m0s
	// the plan deletes virt-launcher-web-nlr65
}
