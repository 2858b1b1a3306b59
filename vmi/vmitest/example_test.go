package vmitest_test

import (
	"fmt"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func Example() {
	v := vmitest.New(vmitest.WithName("web"), vmitest.WithContainerDisk("root", "example/web:1"))
	fmt.Println(v.Name, v.Spec.Volumes[0].ContainerDisk.Image)
	// Output: web example/web:1
}

func ExampleNewVM() {
	m := vmitest.NewVM(vmi.RunAlways, vmitest.WithName("web"), vmitest.WithClaim("root", "web-disk"))
	fmt.Println(m.Name, m.Spec.Strategy(), m.Spec.Template.Spec.Volumes[0].Claim())
	// Output: web Always web-disk
}
