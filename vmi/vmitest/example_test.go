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

func ExampleInstanceOf() {
	m := vmitest.NewVM(vmi.RunAlways, vmitest.WithName("web"))
	v := vmitest.InstanceOf(m, vmitest.InPhase(vmi.PhaseRunning))
	fmt.Println(v.Name, v.Status.Phase, "on", v.Status.NodeName, "of", v.OwnerReferences[0].Kind, m.Name)
	// Output: web Running on node1 of VirtualMachine web
}

func ExampleRecorder() {
	events := &vmitest.Recorder{}
	events.Eventf(vmitest.NewNode("n1", nil), "Normal", "Drained", "%d VMIs have left", 3)
	fmt.Println(events.Events()[0].Message)
	// Output: 3 VMIs have left
}
