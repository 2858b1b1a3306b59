package handler

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// movable makes the VMI one that cannot move while its launcher is of a release that does not
// migrate. It says so once the guest runs, with the write that says that. All else about that
// is virt-controller's, which leaves this reason alone.
func movable(state *protocol.State, s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
	switch c := s.Condition(vmi.ConditionLiveMigratable); {
	case !state.Movable && state.Phase != protocol.Running && state.Phase != protocol.Paused:
	case !state.Movable:
		s.SetCondition(vmi.Condition{Type: vmi.ConditionLiveMigratable, Status: corev1.ConditionFalse, Reason: vmi.ReasonLauncherTooOld,
			Message: "The launcher is of a release that does not migrate: restart the VMI to replace it"}, now)
	case c != nil && c.Reason == vmi.ReasonLauncherTooOld:
		s.RemoveCondition(vmi.ConditionLiveMigratable)
	}
}

// stage is where the migration of the VMI's status stands for the launcher. Empty: it does
// not take part in it.
func stage(o Observed) protocol.MigrationStage {
	m := o.Instance.Status.MigrationState
	if m == nil || o.Session == nil || o.Session.State == nil {
		return ""
	}
	return stageOf(o.Session.State, m.MigrationUID)
}

// isSent says that everything of the guest is at the target of a migration, so that it may
// run there: nothing of it is reported from here.
func isSent(o Observed) bool {
	s := o.Session.State
	return s != nil && s.Migration != nil && s.Migration.Stage == protocol.MigrationSent
}

// standsStill says that the guest stands still at the end of its migration, which is no pause
// of it. One that is paused until its memory is copied is.
func standsStill(o Observed) bool {
	s := o.Session.State
	byMigration := s.Phase == protocol.Paused && s.Pause != nil && s.Pause.Cause == protocol.PausedByMigration
	return isSent(o) || byMigration && stage(o) == protocol.MigrationSends && s.Migration.Mode != vmi.MigrationPaused
}

// arrived says that the guest runs in the pod that the VMI moves to, or ran there.
func arrived(o Observed) bool { return stage(o) == protocol.MigrationArrived }

// arrive reports that the VMI has moved, with all that is known of its guest in the same
// write. It is true whatever was written before.
func arrive(o Observed) Plan {
	session, readable := o.Session, vmi.Unreadable(o.Instance) == nil
	ended := session.State.Phase == protocol.Ended
	if session.Network == nil && session.Finding == nil && readable && !ended {
		return Plan{Actions: []Action{Bind{}}} // what it finds is part of the report
	}
	p, now := Plan{}, metav1.NewTime(o.Now)
	s := o.Instance.Status.DeepCopy()
	s.NodeName = o.Node
	s.Evacuate("", now)
	m := s.MigrationState
	m.Completed, m.Failed, m.FailureReason, m.TargetNodeDomainDetected = true, false, "", true
	m.EndTimestamp, m.TargetNodeDomainReadyTimestamp = now.DeepCopy(), now.DeepCopy()
	if m.StartTimestamp == nil {
		m.StartTimestamp = now.DeepCopy()
	}
	sent(m, session.Move, session.Move.Mode) // what the source has written comes first
	if c := s.Condition(vmi.ConditionPaused); c != nil && c.Reason == ReasonMigrationOutcomeUnknown {
		s.RemoveCondition(vmi.ConditionPaused)
	}
	if s.PodRemoved() { // that is the pod that it has left
		s.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionTrue}, now)
	}
	if readable && runs(o) {
		p.running(o, s, now)
	}
	s.Explain()
	p.Status = s
	p.Events = append(p.Events, normal(EventMigrated, fmt.Sprintf("The VirtualMachineInstance migrated to node %s.", o.Node)))
	return p
}

// moving is what the status says about a migration from this node.
func (p *Plan) moving(o Observed, s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
	if isSent(o) {
		p.unknownOutcome(o, s, now)
	}
	m := s.MigrationState
	if m == nil || m.SourceNode != o.Node || m.Completed || m.Failed {
		return
	}
	switch at := stage(o); at {
	case protocol.MigrationSends, protocol.MigrationSent:
		p.sends(o, m, now)
	default:
		if f := failure(o, at); f != nil {
			p.notMoved(m, *f, now)
		}
	}
}

// modes are the modes of a migration in the order in which one can have them.
var modes = []vmi.MigrationMode{"", vmi.MigrationPreCopy, vmi.MigrationPaused, vmi.MigrationPostCopy}

// sent adds how the guest was sent, and where to, to what is known of that. A mode that was
// before is none.
func sent(m *vmi.MigrationState, move Move, mode vmi.MigrationMode) {
	if mode = cmp.Or(mode, vmi.MigrationPreCopy); slices.Index(modes, mode) > slices.Index(modes, m.Mode) {
		m.Mode = mode
	}
	if to, err := netip.ParseAddrPort(move.Peer); err == nil && move.UID == m.MigrationUID && m.TargetNodeAddress == "" {
		m.TargetNodeAddress = to.Addr().String()
		m.TargetDirectMigrationNodePorts = map[string]int{strconv.Itoa(int(to.Port())): 0}
	}
}

// sends is the status of a migration whose guest is sent.
func (p *Plan) sends(o Observed, m *vmi.MigrationState, now metav1.Time) {
	sent(m, o.Session.Move, o.Session.State.Migration.Mode)
	if m.StartTimestamp != nil {
		return
	}
	m.StartTimestamp = now.DeepCopy()
	p.Events = append(p.Events, normal(EventMigrating, "The VirtualMachineInstance migrates to node "+m.TargetNode))
}

// unknownOutcome makes the VMI paused when it has not become known for some time whether its
// guest runs at the target.
func (p *Plan) unknownOutcome(o Observed, s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
	if wait := o.Session.Sent.Add(outcomeDelay).Sub(o.Now); wait > 0 {
		p.recheck(wait)
		return
	}
	const text = "Everything of the guest is at the target of its migration, which does not say whether the guest runs there"
	s.SetCondition(vmi.Condition{Type: vmi.ConditionPaused, Status: corev1.ConditionTrue, Reason: ReasonMigrationOutcomeUnknown, Message: text}, now)
	if !foreign(s) {
		s.SetCondition(notReady(vmi.ReasonGuestNotRunning, text), now)
	}
}

// failure is why the migration of the VMI's status has failed. Nil: it has not.
func failure(o Observed, at protocol.MigrationStage) *vmi.Finding {
	var given *vmi.Finding
	move := o.Session.Move
	if move.UID == o.Instance.Status.MigrationState.MigrationUID {
		given = move.Finding
	}
	switch {
	case at == protocol.MigrationStays && given == nil && o.Session.State.Migration.Finding != nil:
		return o.Session.State.Migration.Finding
	case at == protocol.MigrationStays && given == nil:
		return &vmi.Finding{Message: "the launcher does not say why"}
	case at == protocol.MigrationStays, at == "" && o.Session.State != nil && move.Ended:
		return given
	}
	return nil // it may still move, and the state of the launcher may be of before
}

// aborted is what clients know an aborted migration by.
const aborted = "has been aborted"

// notMoved is the status of a migration that has failed: the guest runs on.
func (p *Plan) notMoved(m *vmi.MigrationState, f vmi.Finding, now metav1.Time) {
	m.Failed, m.Completed, m.EndTimestamp = true, true, now.DeepCopy()
	if m.StartTimestamp == nil {
		m.StartTimestamp = now.DeepCopy()
	}
	m.FailureReason = strings.TrimPrefix(f.Reason+": "+f.Message, ": ")
	if m.AbortRequested {
		m.AbortStatus = vmi.MigrationAbortSucceeded
		if !strings.Contains(m.FailureReason, aborted) {
			m.FailureReason = "Live migration " + aborted
		}
	}
	p.Events = append(p.Events, warning(EventMigrated, fmt.Sprintf("VirtualMachineInstance migration uid %s failed. reason:%s", m.MigrationUID, m.FailureReason)))
}
