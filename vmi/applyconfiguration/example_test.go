package applyconfiguration_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/applyconfiguration"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func Example() {
	c, err := client.New(fake.New(vmitest.NewVM(vmi.RunHalted, vmitest.WithClaim("root", "web"))).Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	// One more volume. Those of others stay, and so does all else.
	logs := applyconfiguration.VirtualMachine("testvmi", "default").
		WithSpec(applyconfiguration.VirtualMachineSpec().
			WithTemplate(applyconfiguration.VirtualMachineInstanceTemplateSpec().
				WithSpec(applyconfiguration.VirtualMachineInstanceSpec().
					WithVolumes(applyconfiguration.Volume().WithName("logs").WithEmptyDisk(applyconfiguration.EmptyDisk())))))
	vm, err := c.VirtualMachines("default").Apply(context.Background(), logs, metav1.ApplyOptions{FieldManager: "log-operator"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range vm.Spec.Template.Spec.Volumes {
		fmt.Println(v.Name)
	}
	// Output:
	// root
	// logs
}
