package handler_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func ExampleDecide() {
	v := vmitest.New()
	v.Status.Phase, v.Status.NodeName = vmi.PhaseScheduled, "n1"
	v.Status.ActivePods = map[types.UID]string{"0e3f8a52": "n1"}
	o := handler.Observed{Instance: v, Pod: handler.Pods(v, "n1")[0], Node: "n1", Now: time.Now()}
	fmt.Printf("%T\n", handler.Decide(o).Actions[0])

	o.Session = &handler.Session{Began: o.Now, State: &protocol.State{Phase: protocol.Waiting}}
	fmt.Printf("%T\n", handler.Decide(o).Actions[0])

	o.Session.Network = &handler.Network{}
	put := handler.Decide(o).Actions[0].(handler.Put)
	fmt.Printf("%T %d\n", put, put.Generation)

	o.Session.Put, o.Session.State.Phase = &put.Desired, protocol.Running
	fmt.Println(handler.Decide(o).Status.Phase)
	// Output:
	// handler.Connect
	// handler.Bind
	// handler.Put 1
	// Running
}
