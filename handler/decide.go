package handler

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// Decide says what to do for a VMI. The situations, most urgent first:
//
//	VMI                launcher            what to do
//	gone               -                   disconnect; its pod is deleted with it
//	its pod removed    nothing is left     report the end
//	its pod removed    -                   as below, but for what hangs or has ended, of which
//	                                       nothing is reported; look again
//	not handed over    -                   disconnect; virt-controller has it
//	no pod here        -                   disconnect; another handler has it
//	failed, fenced     may run             destroy the guest, and disconnect
//	final              -                   disconnect; everything is reported
//	handed over        no session          connect
//	handed over        does not answer     report that; the session keeps trying
//	handed over        ended               report the end, unless the guest moved away
//	cannot be decoded  any other           nothing but to report that: the guest is left
//	                                       alone, and virt-controller ends a deleted VMI
//	being deleted      any other           put the stop; that needs no network
//	handed over        not running         bind the network, then put the VMI; report
//	                                       what fails
//	handed over        waits, and beside   bind the network; report that; look again
//	                   it the guest of a
//	                   VMI that is gone
//	                   holds the same
//	handed over        running             the same, and report what the guest does
//	Scheduled          not running at      Failed; put a stop if the launcher answers
//	                   StartDeadline
//
// This is the pod that the VMI runs in. Of a pod that the VMI moves to nothing is
// reported, for the handler of status.nodeName does that:
//
//	VMI                launcher            what to do
//	handed over        no session          connect
//	handed over        does not answer     nothing; the session keeps trying
//	handed over        ended               nothing; virt-controller observes the pod
//	any                the guest runs      report that it has moved, in one write: from then
//	                   there               on it is the pod that the VMI runs in
//	cannot be decoded  any other           nothing
//	being deleted      any other           put the stop
//	has not moved      any other           put the stop
//	handed over        waits               bind the network, then put the VMI as a target,
//	                                       which starts no domain
//
// What is put is put again whenever it changes, each time with a higher
// generation. The status is reported as a whole, in one write; if it is the same
// as before nothing is written.
func Decide(o Observed) Plan {
	if isRemoved(o) {
		return removed(o)
	}
	return decide(o)
}

func decide(o Observed) Plan {
	v := o.Instance
	switch {
	case v == nil || o.Pod.UID == "" || !handedOver(v):
		return leave(o)
	case o.Session == nil:
		return connect(o.Pod.UID)
	case o.Pod.Role == vmi.RoleTarget:
		return await(o)
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

// leave ends the session. A guest that may run on although virt-controller has ended its VMI,
// since the node was fenced, is switched off: the next one may run elsewhere.
func leave(o Observed) Plan {
	s := o.Session
	if s == nil {
		return Plan{}
	}
	return Plan{Actions: []Action{Disconnect{Destroy: s.Over && (s.State == nil || s.State.Phase != protocol.Ended)}}}
}

// connect connects, and asks for a decision when a launcher that has not answered
// is to be reported: nothing else may happen until then.
func connect(pod types.UID) Plan {
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

// await prepares the launcher of a pod that the VMI moves to, and lets it wait. The VMI
// is another handler's, so nothing is reported until it has moved. A guest that ended here after
// its migration had failed is not the VMI's: that may run on where it was.
func await(o Observed) Plan {
	p := Plan{}
	m := o.Instance.Status.MigrationState
	switch s := o.Session; {
	case arrived(o) && (!m.Failed || s.State.Phase != protocol.Ended):
		return arrive(o)
	case s.State == nil, s.State.Phase == protocol.Ended, vmi.Unreadable(o.Instance) != nil:
	case m != nil && m.Failed:
		p.put(o, &protocol.Stop{})
	case o.Instance.DeletionTimestamp != nil: // its guest may have come meanwhile, and is to power off then
		p.put(o, &protocol.Stop{GracePeriodSeconds: int64(o.Instance.GracePeriod().Seconds())})
	case s.Network == nil:
		p.Actions = append(p.Actions, Bind{})
	default:
		p.put(o, nil)
	}
	return p
}

func stop(o Observed) Plan {
	p := Plan{}
	s := o.Session
	asked := s.State.Phase == protocol.Stopping || s.Put != nil && s.Put.Stop != nil
	grace := int64(o.Instance.GracePeriod().Seconds())
	if p.put(o, &protocol.Stop{GracePeriodSeconds: grace}) && !asked {
		p.Actions = append(p.Actions, Emit{normal(EventShuttingDown, stopping(s.State, grace))})
	}
	p.report(o)
	return p
}

// stopping says what the launcher does to a guest that it is to stop.
func stopping(s *protocol.State, gracePeriodSeconds int64) string {
	switch {
	case gracePeriodSeconds == 0:
		return "The guest is switched off: its grace period is 0 seconds"
	case s.Phase == protocol.Paused && (s.Pause == nil || s.Pause.Cause != protocol.PausedByMigration && s.Pause.Cause != protocol.PausedBySignal):
		return "The guest is paused and is switched off"
	}
	return "The guest is asked to power off"
}

func run(o Observed) Plan {
	p := Plan{}
	switch {
	case o.Session.Network == nil:
		p.Actions = append(p.Actions, Bind{}) // what it makes is part of the Desired
	case isHeld(o):
		p.recheck(lookPeriod)
	default:
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
