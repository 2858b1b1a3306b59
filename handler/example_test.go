package handler_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func ExampleDecide() {
	v := vmitest.New()
	v.Status.Phase, v.Status.NodeName = vmi.Scheduled, "n1"
	v.Status.ActivePods = map[types.UID]string{"0e3f8a52": "n1"}
	o := handler.Observed{Instance: v, Now: time.Now()}
	fmt.Printf("%T\n", handler.Decide(o).Actions[0])

	o.Link = &handler.Link{PodUID: "0e3f8a52", Guest: &handler.Guest{Phase: handler.GuestStarting}}
	for _, a := range handler.Decide(o).Actions {
		fmt.Printf("%T\n", a)
	}

	o.Link.Plumbing, o.Link.Put = &handler.Plumbing{}, &handler.Wish{}
	o.Link.Guest.Phase = handler.GuestRunning
	fmt.Println(handler.Decide(o).Status.Phase)
	// Output:
	// handler.Connect
	// handler.Plumb
	// handler.Put
	// Running
}
