package handler

import (
	"time"

	"github.com/podvisor/podvisor/vmi"
)

// faultPatience is how long something may go wrong before the user is told. A
// fault that is over by the next try is not worth a write and an event.
const faultPatience = time.Second

// Decide says what to do for a machine. The situations, most urgent first:
//
//	machine            launcher            what to do
//	gone               -                   disconnect; its pod goes with it
//	not handed over    -                   disconnect; virt-controller has it
//	final              -                   disconnect; all is said
//	handed over        none                connect
//	handed over        other pod           disconnect, then connect
//	handed over        silent              nothing: the connection keeps trying. A pod that
//	                                       is gone, or whose launcher is, is judged by
//	                                       virt-controller, which sees the pod
//	handed over        ended               report the end
//	being deleted      alive               put the stop; no network is needed for that
//	handed over        alive               plumb, put the machine, and again when the
//	                                       cluster's settings change; report what it does
//
// Where the status is reported it is the whole of it, in one write; where it is
// the same as before nothing is written.
func Decide(o Observed) Plan {
	v := o.Instance
	switch {
	case v == nil, !handedOver(v):
		return leave(o)
	case o.Link == nil:
		return Plan{Actions: []Action{Connect{podOf(v)}}}
	case o.Link.PodUID != podOf(v):
		return Plan{Actions: []Action{Disconnect{}, Connect{podOf(v)}}}
	case o.Link.Guest == nil:
		return silent(o)
	case o.Link.Guest.Phase == GuestEnded:
		return ended(o)
	case v.DeletionTimestamp != nil:
		return stop(o)
	}
	return run(o)
}

// handedOver says that the machine is this handler's: virt-controller has
// named its pod, and it has not ended.
func handedOver(v *vmi.VirtualMachineInstance) bool {
	return (v.Status.Phase == vmi.Scheduled || v.Status.Phase == vmi.Running) && podOf(v) != ""
}

// podOf is the UID of the machine's pod on its node.
func podOf(v *vmi.VirtualMachineInstance) string {
	found := ""
	for uid, node := range v.Status.ActivePods {
		// There is one; of several any will do, but always the same.
		if node == v.Status.NodeName && (found == "" || string(uid) < found) {
			found = string(uid)
		}
	}
	return found
}

func leave(o Observed) Plan {
	if o.Link == nil {
		return Plan{}
	}
	return Plan{Actions: []Action{Disconnect{}}}
}

func silent(o Observed) Plan {
	p := Plan{}
	p.report(o)
	return p
}

func ended(o Observed) Plan {
	p := Plan{}
	p.report(o)
	return p
}

func stop(o Observed) Plan {
	p := Plan{}
	w := Wish{Stop: true, Grace: o.Instance.GracePeriod(), Settings: o.Settings}
	if o.Link.Put == nil || *o.Link.Put != w {
		p.Actions = append(p.Actions, Put{w})
		if o.Link.Guest.Phase != GuestStopping {
			p.Actions = append(p.Actions, Tell{Event{Reason: EventShuttingDown, Message: "The guest is asked to power off"}})
		}
	}
	p.report(o)
	return p
}

func run(o Observed) Plan {
	p := Plan{}
	if o.Link.Plumbing == nil {
		p.Actions = append(p.Actions, Plumb{})
	}
	if w := (Wish{Settings: o.Settings}); o.Link.Put == nil || *o.Link.Put != w {
		p.Actions = append(p.Actions, Put{w})
	}
	p.report(o)
	return p
}
