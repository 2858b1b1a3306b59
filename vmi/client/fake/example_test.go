package fake_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func Example() {
	c, err := client.New(fake.New(vmitest.New()).Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	// The test writes the status that the code under test waits for.
	vmis := c.VirtualMachineInstances("default")
	old, err := vmis.Get(context.Background(), "testvmi", metav1.GetOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	running := old.DeepCopy()
	running.Status.SetPhase(vmi.PhaseRunning, metav1.Now())
	v, err := client.WriteStatus(context.Background(), vmis, old, running)
	fmt.Println(v.Status.Phase, err)
	// Output: Running <nil>
}
