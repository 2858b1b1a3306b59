package pod_test

import (
	"fmt"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func ExampleRender() {
	v := vmitest.New(vmitest.WithName("web"), vmitest.WithContainerDisk("root", "example/web:1"))
	p, err := pod.Render(v, pod.Config{Launcher: pod.Launcher{Image: "example/virt-launcher:v1"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := p.Spec.Containers[0]
	fmt.Println(p.Name)
	fmt.Println(c.Name, c.Image, c.Resources.Requests.Memory())
	fmt.Println(p.Spec.Volumes[4].Image.Reference)
	// Output:
	// virt-launcher-web-nlr65
	// compute example/virt-launcher:v1 237Mi
	// example/web:1
}

func ExampleRender_invalid() {
	v := vmitest.New()
	v.Spec.Domain.Memory = nil
	_, err := pod.Render(v, pod.Config{Launcher: pod.Launcher{Image: "example/virt-launcher:v1"}})
	fmt.Println(err)
	// Output:
	// invalid: spec.domain.memory.guest: Required value: say how much memory the guest sees: here, or in spec.domain.resources.requests.memory, or have one huge page by spec.domain.memory.hugepages.pageSize
}
