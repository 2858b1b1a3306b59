package vm_test

import (
	"fmt"

	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// A new VM that is to run gets its finalizer, a revision of its spec and a VMI.
func Example() {
	v := vmitest.NewVM(vmi.RunAlways, vmitest.WithName("keeper"))
	for _, a := range vm.Decide(vm.Observed{VM: v}).Actions {
		fmt.Printf("%T\n", a)
	}
	// Output:
	// scheduler.AddFinalizer
	// scheduler.CreateRevision
	// scheduler.CreateInstance
	// scheduler.Emit
}
