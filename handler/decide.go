package handler

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// Decide says what to do for a VMI. The situations, most urgent first:
//
//	VMI                launcher            what to do
//	gone               -                   disconnect; its pod is deleted with it
//	not handed over    -                   disconnect; virt-controller has it
//	no pod here        -                   disconnect; another handler has it
//	final              -                   disconnect; everything is reported
//	handed over        no session          connect
//	handed over        of another pod      disconnect, then connect
//	active elsewhere   any                 nothing: the handler of status.nodeName
//	                                       reports, and only its pod starts a domain
//	handed over        does not answer     report that; the session keeps trying
//	handed over        ended               report the end
//	cannot be decoded  any other           nothing but to report that: the guest is left
//	                                       alone, and virt-controller ends a deleted VMI
//	being deleted      any other           put the stop; that needs no network
//	handed over        not running         bind the network, then put the VMI; report
//	                                       what fails
//	handed over        running             the same, and report what the guest does
//	Scheduled          not running at      Failed; put a stop if the launcher answers
//	                   StartDeadline
//
// What is put is put again whenever it changes, each time with a higher
// generation. The status is reported as a whole, in one write; if it is the same
// as before nothing is written.
func Decide(o Observed) Plan {
	v := o.Instance
	pod := ""
	if v != nil && handedOver(v) {
		pod = podOn(v, o.Node)
	}
	switch {
	case pod == "":
		return leave(o)
	case o.Session == nil:
		return connect(pod)
	case o.Session.PodUID != pod:
		p := connect(pod)
		p.Actions = append([]Action{Disconnect{}}, p.Actions...)
		return p
	case v.Status.NodeName != o.Node:
		return Plan{}
	case o.Session.State != nil && o.Session.State.Phase == protocol.Ended:
		return report(o)
	case vmi.Unreadable(v) != nil:
		return leaveAlone(o)
	case overdue(o):
		return failStart(o)
	case o.Session.State == nil:
		return report(o)
	case v.DeletionTimestamp != nil:
		return stop(o)
	}
	return run(o)
}

// handedOver says that virt-controller has given the VMI to the handlers, and
// that it has not ended.
func handedOver(v *vmi.VirtualMachineInstance) bool {
	return v.Status.Phase == vmi.Scheduled || v.Status.Phase == vmi.Running
}

// podOn is the UID of the VMI's pod on the node. Empty: it has none there. Of
// several it is always the same.
func podOn(v *vmi.VirtualMachineInstance, node string) string {
	found := ""
	for uid, n := range v.Status.ActivePods {
		if n == node && (found == "" || string(uid) < found) {
			found = string(uid)
		}
	}
	return found
}

func leave(o Observed) Plan {
	if o.Session == nil {
		return Plan{}
	}
	return Plan{Actions: []Action{Disconnect{}}}
}

// connect connects, and asks for a decision when a launcher that has not answered
// is to be reported: nothing else may happen until then.
func connect(pod string) Plan {
	return Plan{Actions: []Action{Connect{pod}}, Recheck: SilenceDelay}
}

// leaveAlone reports that the VMI is stored and cannot be decoded. What its guest
// shall be is not known, so the launcher gets nothing.
func leaveAlone(o Observed) Plan {
	p := Plan{Status: o.Instance.Status.DeepCopy()}
	f := vmi.UnreadableFinding(o.Instance)
	p.warn(f, warning(f.Reason, f.Message), p.Status, metav1.NewTime(o.Now))
	p.Status.Explain()
	return p
}

func stop(o Observed) Plan {
	p := Plan{}
	s := o.Session
	asked := s.State.Phase == protocol.Stopping || s.Put != nil && s.Put.Stop != nil
	if p.put(o, &protocol.Stop{GracePeriodSeconds: int64(o.Instance.GracePeriod().Seconds())}) && !asked {
		p.Actions = append(p.Actions, Emit{normal(EventShuttingDown, "The guest is asked to power off")})
	}
	p.report(o)
	return p
}

func run(o Observed) Plan {
	p := Plan{}
	if o.Session.Network == nil {
		p.Actions = append(p.Actions, BindNetwork{}) // what it makes is part of the Desired
	} else {
		p.put(o, nil)
	}
	p.report(o)
	return p
}

// report only reports.
func report(o Observed) Plan {
	p := Plan{}
	p.report(o)
	return p
}
