package pool_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/pool"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

func ExampleDecide() {
	p := &vmpool.VirtualMachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u"}}
	p.Spec.Replicas = new(int32(2))
	p.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	p.Spec.VirtualMachineTemplate = &vmpool.VirtualMachineTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}, Spec: vmitest.NewVM(vmi.RunAlways).Spec,
	}
	for _, a := range pool.Decide(pool.Observed{Pool: p}).Actions {
		if _, ok := a.(scheduler.CreateVM); ok {
			fmt.Println(a)
		}
	}
	// Output:
	// create VM web-0
	// create VM web-1
}
