package sizing_test

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/podvisor/podvisor/scheduler/sizing"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	fakevmi "github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/instancetype"
)

func Example() {
	c, err := client.New(fakevmi.New().Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	v := &vmi.VirtualMachine{}
	v.Namespace, v.Spec.Instancetype = "default", &vmi.InstancetypeMatcher{Name: "small"}
	found, err := sizing.Lookup(context.Background(), c, fake.NewClientset()).Find(v.Namespace, instancetype.References(v))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(found[0].Missing)
	// Output: VirtualMachineClusterInstancetype small, which spec.instancetype names, does not exist
}
