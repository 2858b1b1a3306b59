package vmpool_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

func Example() {
	c, err := client.New(fake.New().Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	labels := map[string]string{"app": "web"}
	p := &vmpool.VirtualMachinePool{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	p.Spec.Replicas = new(int32(5))
	p.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	p.Spec.MaxUnavailable = new(intstr.FromString("30%"))
	p.Spec.VirtualMachineTemplate = &vmpool.VirtualMachineTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: vmitest.NewVM(vmi.RunAlways).Spec,
	}
	ctx := context.Background()
	pools := client.Of(c, vmpool.VirtualMachinePools, "default")
	if p, err = pools.Create(ctx, p, metav1.CreateOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	s, err := pools.GetScale(ctx, "web", metav1.GetOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Spec.Replicas, "VMs,", p.Spec.MostUnavailable(), "restarted at a time")
	// Output: 5 VMs, 2 restarted at a time
}
