package scheduler_test

import (
	"fmt"

	"github.com/podvisor/podvisor/scheduler"
)

func ExamplePlan() {
	p := scheduler.Plan{Actions: []scheduler.Action{
		scheduler.DeletePod{Name: "virt-launcher-web-nlr65", UID: "8cc0b144"},
		scheduler.RemoveFinalizer{},
	}}
	for _, a := range p.Actions {
		fmt.Printf("%T%+v\n", a, a)
	}
	// Output:
	// scheduler.DeletePod{Name:virt-launcher-web-nlr65 UID:8cc0b144}
	// scheduler.RemoveFinalizer{}
}
