package pod_test

import (
	"testing"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// BenchmarkRender renders the pod of a VMI with what most have.
func BenchmarkRender(b *testing.B) {
	v := vmitest.New(vmitest.WithMemory("1Gi"), vmitest.WithContainerDisk("root", "example/fedora:40"), vmitest.WithCloudInit("seed", "#!/bin/sh\n"),
		vmitest.WithMasquerade("default", vmi.Port{Name: "http", Port: 80}))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := pod.Render(v, config); err != nil {
			b.Fatal(err)
		}
	}
}
