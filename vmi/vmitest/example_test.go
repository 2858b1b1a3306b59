package vmitest_test

import (
	"fmt"

	"github.com/podvisor/podvisor/vmi/vmitest"
)

func Example() {
	v := vmitest.New(vmitest.WithName("web"), vmitest.WithContainerDisk("root", "example/web:1"))
	fmt.Println(v.Name, v.Spec.Volumes[0].ContainerDisk.Image)
	// Output: web example/web:1
}
