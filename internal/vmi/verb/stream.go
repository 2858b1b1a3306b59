package verb

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

const screen = "vnc"

// The launcher's names of streams.
const (
	// Console is the guest's serial port.
	Console = "console"
	// Screen is the guest's screen, which who opens it takes from another.
	Screen = "screen"
	// ScreenIfFree is the screen, which is refused while another has it.
	ScreenIfFree = "screen-if-free"
	// Screenshot is one picture of the screen, as a PNG file.
	Screenshot = "screenshot"
)

// The networks of ports.
const (
	TCP = "tcp"
	UDP = "udp"
)

const (
	portForward = "portforward"
	port        = "PORT, PORT/tcp or PORT/udp"
)

// streams are the verbs that open a stream, or send what one has.
var streams = []Verb{
	{Resource: VMIs, Subresource: "console", Method: Get, Code: done, Role: Edit, Reads: []Source{VMI}, Decide: console},
	{Resource: VMIs, Subresource: screen, Method: Get, Code: done, Role: Edit, Reads: []Source{VMI}, Decide: show},
	{Resource: VMIs, Subresource: "vnc/screenshot", Method: Get, Code: done, Role: Admin, Reads: []Source{VMI}, Decide: screenshot},
	{Resource: VMIs, Subresource: portForward, Method: Get, Code: done, Role: Edit, Reads: []Source{VMI}, Tail: port, Decide: forwardVMI},
	{Resource: VMs, Subresource: portForward, Method: Get, Code: done, Role: Edit, Reads: []Source{VM, VMI}, Tail: port, Decide: forwardVM},
}

func console(o Observed) (Plan, error) {
	switch {
	case o.VMI == nil:
		return Plan{}, noVMI(o)
	case off(o.VMI.Spec.Domain.Devices.AutoattachSerialConsole):
		// Clients expect just these words. They ask again for minutes after a 400.
		return Plan{}, status(forbidden, metav1.StatusReasonConflict, "No serial consoles are present.")
	case o.VMI.Status.Phase == vmi.PhaseFailed:
		return Plan{}, conflict(OfVMI, o.Name, "VMI is in failed status")
	case o.VMI.Status.Phase != vmi.PhaseRunning:
		return Plan{}, bad("VMI is not running")
	}
	return Plan{Stream: &Stream{Name: Console}}, nil
}

func off(attached *bool) bool { return attached != nil && !*attached }

// withScreen says whether the VMI runs and has a screen.
func withScreen(o Observed) error {
	switch {
	case o.VMI == nil:
		return noVMI(o)
	case off(o.VMI.Spec.Domain.Devices.AutoattachGraphicsDevice):
		return bad("No graphics devices are present.")
	case o.VMI.Status.Phase != vmi.PhaseRunning:
		return bad("VMI is not running")
	}
	return nil
}

func show(o Observed) (Plan, error) {
	if err := withScreen(o); err != nil {
		return Plan{}, err
	}
	if o.Keep {
		return Plan{Stream: &Stream{Name: ScreenIfFree}}, nil
	}
	return Plan{Stream: &Stream{Name: Screen}}, nil
}

func screenshot(o Observed) (Plan, error) {
	if err := withScreen(o); err != nil {
		return Plan{}, err
	}
	return Plan{Stream: &Stream{Name: Screenshot}}, nil
}

func forwardVMI(o Observed) (Plan, error) { return forward(o, ofVMI) }
func forwardVM(o Observed) (Plan, error)  { return forward(o, ofVM) }

// forward opens a port of the VMI that owned finds.
func forward(o Observed, owned func(Observed) error) (Plan, error) {
	network := TCP
	if len(o.Tail) == 2 {
		network = o.Tail[1]
	}
	if len(o.Tail) < 1 || len(o.Tail) > 2 || network != TCP && network != UDP {
		return Plan{}, bad("the path of portforward ends with a port, and tcp or udp if it is not tcp")
	}
	n, err := strconv.ParseUint(o.Tail[0], 10, 16)
	if err != nil || n == 0 {
		return Plan{}, bad("port %q is none from 1 to 65535", o.Tail[0])
	}
	if err := owned(o); err != nil {
		return Plan{}, err
	}
	if o.VMI.Status.Condition(vmi.ConditionPaused) != nil {
		return Plan{}, conflict(OfVMI, o.Name, "VMI is paused")
	}
	if len(o.VMI.Status.Interfaces) == 0 {
		return Plan{}, bad("no network interfaces are present: VMI %s reports none; wait until it runs", o.VMI.Name)
	}
	return Plan{Stream: &Stream{Port: uint16(n), Network: network}}, nil
}
