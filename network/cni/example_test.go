package cni_test

import (
	"fmt"

	"github.com/podvisor/podvisor/network/cni"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func ExampleSelection() {
	v := vmitest.New(vmitest.WithMasquerade("default"), vmitest.WithMultus("storage", "infra/san"))
	for annotation, value := range cni.Selection(v) {
		fmt.Println(annotation, value)
	}
	fmt.Println("in the pod:", cni.Links(v)["storage"])
	// Output:
	// k8s.v1.cni.cncf.io/networks [{"name":"san","namespace":"infra","interface":"pod49a25f9feef"}]
	// in the pod: pod49a25f9feef
}
