package handler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// leaving makes the VMI one that moves from this node to n2.
func leaving(v *vmi.VirtualMachineInstance) {
	v.Status.ActivePods["pod-2"] = "n2"
	v.Status.MigrationState = &vmi.MigrationState{MigrationUID: "m1", SourceNode: node, TargetNode: "n2"}
}

// settledBefore is what the status says of a guest that runs, before its migration.
func settledBefore(v *vmi.VirtualMachineInstance) {
	v.Status = *Decide(observed(v, session(v, state(protocol.Running)))).Status
}

func TestTheSourceReportsThatItSendsInOneWrite(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseRunning, leaving, settledBefore)
	s := session(v, at(protocol.MigrationSends))
	s.State.Machine = "pc-q35-7.2"
	s.Move = Move{UID: "m1", Peer: "10.0.0.2:8186"}
	p := Decide(observed(v, s))
	want := v.Status.DeepCopy()
	m := want.MigrationState
	m.StartTimestamp, m.Mode = new(metav1.NewTime(now)), vmi.MigrationPreCopy
	m.TargetNodeAddress, m.TargetDirectMigrationNodePorts = "10.0.0.2", map[string]int{"8186": 0}
	require.Equal(t, want, p.Status)
	require.Equal(t, []Event{normal(EventMigrating, "The VirtualMachineInstance migrates to node n2")}, p.Events)

	v.Status = *p.Status
	again := Decide(observed(v, s))
	require.Equal(t, &v.Status, again.Status, "nothing is written again")
	require.Empty(t, again.Events)
	for _, mode := range []struct{ says, want vmi.MigrationMode }{
		{vmi.MigrationPaused, vmi.MigrationPaused}, {vmi.MigrationPreCopy, vmi.MigrationPaused}, {vmi.MigrationPostCopy, vmi.MigrationPostCopy},
		{vmi.MigrationPaused, vmi.MigrationPostCopy},
	} {
		s.State.Migration.Mode = mode.says
		v.Status = *Decide(observed(v, s)).Status
		require.Equal(t, mode.want, v.Status.MigrationState.Mode, "a mode that was before is none")
	}
}

func TestTheGuestStandsStillAtTheEndAndThatIsNoPause(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseRunning, leaving, settledBefore)
	v.Status.MigrationState.StartTimestamp, v.Status.MigrationState.Mode = new(metav1.NewTime(now)), vmi.MigrationPreCopy
	s := session(v, at(protocol.MigrationSends))
	s.State.Machine, s.State.Phase, s.State.Pause = "pc-q35-7.2", protocol.Paused, &protocol.Pause{Cause: protocol.PausedByMigration}
	require.Equal(t, &v.Status, Decide(observed(v, s)).Status)
	s.State.Migration.Mode = vmi.MigrationPaused
	require.Equal(t, vmi.ReasonPausedByMigrationMonitor, Decide(observed(v, s)).Status.Condition(vmi.ConditionPaused).Reason, "one that waits for its memory is paused")
}

func TestASourceThatHasSentItsGuestReportsNothingOfIt(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseRunning, leaving, settledBefore)
	v.Status.MigrationState.StartTimestamp = new(metav1.NewTime(now))
	v.Status.MigrationState.Mode = vmi.MigrationPreCopy
	s := session(v, at(protocol.MigrationSent))
	s.Sent, s.State.Phase, s.State.Reboots, s.State.Finding = now, protocol.Paused, 3, &vmi.Finding{Reason: "X"}
	p := Decide(observed(v, s))
	require.Equal(t, &v.Status, p.Status)
	require.Equal(t, outcomeDelay, p.Recheck)

	s.Sent = now.Add(-outcomeDelay)
	p = Decide(observed(v, s))
	require.Equal(t, ReasonMigrationOutcomeUnknown, p.Status.Condition(vmi.ConditionPaused).Reason)
	require.Equal(t, corev1.ConditionFalse, p.Status.Condition(vmi.ConditionReady).Status)
	require.Nil(t, p.Status.GuestReboots)
	v.Status = *p.Status
	s.Sent = now.Add(-time.Hour)
	require.Equal(t, &v.Status, Decide(observed(v, s)).Status, "it is written once")

	s.State = at(protocol.MigrationStays)
	s.State.Machine, s.Sent = "pc-q35-7.2", time.Time{}
	p = Decide(observed(v, s))
	require.Nil(t, p.Status.Condition(vmi.ConditionPaused), "it was resumed")
	require.True(t, p.Status.MigrationState.Failed)
}

func TestAMigrationThatFailedIsReportedInOneWriteAndTheGuestRunsOn(t *testing.T) {
	t.Parallel()
	stays := at(protocol.MigrationStays)
	stays.Migration.Finding = &vmi.Finding{Reason: "Stalled", Message: "nothing was sent for 150 s"}
	silent := at(protocol.MigrationStays)
	changed := &vmi.Finding{Reason: "ContainerDiskChanged", Message: "the disk is another"}
	for name, tt := range map[string]struct {
		state  *protocol.State
		move   Move
		abort  bool
		reason string // empty: it has not failed
	}{
		"as the launcher says":             {stays, Move{UID: "m1"}, false, "Stalled: nothing was sent for 150 s"},
		"as the handler knows":             {stays, Move{UID: "m1", Finding: changed}, false, "ContainerDiskChanged: the disk is another"},
		"of another migration":             {stays, Move{UID: "m0", Finding: changed}, false, "Stalled: nothing was sent for 150 s"},
		"and neither says why":             {silent, Move{}, false, "the launcher does not say why"},
		"before it began":                  {at(""), Move{UID: "m1", Finding: changed, Ended: true}, false, "ContainerDiskChanged: the disk is another"},
		"not yet: its stage may be of old": {at(""), Move{UID: "m1", Finding: changed}, false, ""},
		"not yet: the launcher is to end":  {at(protocol.MigrationBegins), Move{UID: "m1", Finding: changed}, false, ""},
		"not: it may have moved":           {at(protocol.MigrationSent), Move{UID: "m1", Finding: changed}, false, ""},
		"not: another migration has":       {at(""), Move{UID: "m0", Finding: changed}, false, ""},
		"not: it was not begun":            {at(""), Move{UID: "m1"}, false, ""},
		"since it was aborted":             {stays, Move{}, true, "Live migration has been aborted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := instance(vmi.PhaseRunning, leaving, settledBefore)
			v.Status.MigrationState.AbortRequested = tt.abort
			copied := *tt.state
			s := session(v, &copied)
			s.State.Machine, s.Move, s.Sent = "pc-q35-7.2", tt.move, now
			p := Decide(observed(v, s))
			m := p.Status.MigrationState
			if tt.reason == "" {
				require.False(t, m.Failed || m.Completed)
				return
			}
			want := v.Status.DeepCopy()
			stamp := new(metav1.NewTime(now))
			w := want.MigrationState
			w.StartTimestamp, w.EndTimestamp, w.Failed, w.Completed, w.FailureReason = stamp, stamp, true, true, tt.reason
			if tt.abort {
				w.AbortStatus = vmi.MigrationAbortSucceeded
			}
			require.Equal(t, want, p.Status)
			require.Equal(t, []Event{warning(EventMigrated, "VirtualMachineInstance migration uid m1 failed. reason:"+tt.reason)}, p.Events)
			v.Status = *p.Status
			require.Equal(t, &v.Status, Decide(observed(v, s)).Status, "it is written once")
		})
	}
}

func TestTheTargetReportsTheSwitchInOneWrite(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseRunning, moving)
	v.Status.Evacuate("n2", metav1.NewTime(now))
	v.Status.Interfaces = []vmi.InterfaceStatus{{Name: "default", IP: "10.244.2.9"}}
	v.Status.MigrationState.StartTimestamp = new(metav1.NewTime(now.Add(-time.Minute)))
	s := session(v, at(protocol.MigrationArrived))
	s.Put.Role = vmi.RoleTarget
	p := Decide(observed(v, s))
	require.Empty(t, p.Actions)
	require.Equal(t, []Event{normal(EventMigrated, "The VirtualMachineInstance migrated to node "+node+".")}, p.Events)
	stamp := new(metav1.NewTime(now))
	require.Equal(t, &vmi.MigrationState{
		MigrationUID: "m1", SourceNode: "n2", TargetNode: node, StartTimestamp: v.Status.MigrationState.StartTimestamp, EndTimestamp: stamp,
		Completed: true, TargetNodeDomainDetected: true, TargetNodeDomainReadyTimestamp: stamp, Mode: vmi.MigrationPreCopy,
	}, p.Status.MigrationState)
	require.Equal(t, node, p.Status.NodeName)
	require.Empty(t, p.Status.EvacuationNodeName)
	require.Nil(t, p.Status.Condition(vmi.ConditionEvictionRequested))
	require.Equal(t, "10.244.1.7", p.Status.Interfaces[0].IP)
	require.Equal(t, vmi.PhaseRunning, p.Status.Phase)

	v.Status = *p.Status
	next := Decide(observed(v, s))
	require.Equal(t, &v.Status, next.Status, "the next decision has nothing to add")
	require.Equal(t, vmi.RoleActive, next.Actions[0].(Put).Role, "the VMI runs in the pod")
}

func TestTheTargetReportsWhatTheSourceCouldNot(t *testing.T) {
	t.Parallel()
	type state = vmi.MigrationState
	for name, tt := range map[string]struct {
		before   state
		reported Move
		want     state // Mode and where to
	}{
		"all": {state{}, Move{UID: "m1", Peer: "10.0.0.2:8186", Mode: vmi.MigrationPostCopy},
			state{Mode: vmi.MigrationPostCopy, TargetNodeAddress: "10.0.0.2", TargetDirectMigrationNodePorts: map[string]int{"8186": 0}}},
		"a later mode": {state{Mode: vmi.MigrationPreCopy, TargetNodeAddress: "10.0.0.1"}, Move{UID: "m1", Peer: "10.0.0.2:8186", Mode: vmi.MigrationPaused},
			state{Mode: vmi.MigrationPaused, TargetNodeAddress: "10.0.0.1"}},
		"no mode that was before":      {state{Mode: vmi.MigrationPaused}, Move{UID: "m1", Mode: vmi.MigrationPreCopy}, state{Mode: vmi.MigrationPaused}},
		"nothing of another migration": {state{}, Move{UID: "m0", Peer: "10.0.0.2:8186"}, state{Mode: vmi.MigrationPreCopy}},
		"nothing that is no address":   {state{}, Move{UID: "m1", Peer: "here", Mode: "Beamed"}, state{}},
		"what is known without a word": {state{}, Move{}, state{Mode: vmi.MigrationPreCopy}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := instance(vmi.PhaseRunning, moving)
			m := v.Status.MigrationState
			m.Mode, m.TargetNodeAddress = tt.before.Mode, tt.before.TargetNodeAddress
			s := session(v, at(protocol.MigrationArrived))
			s.Move = tt.reported
			is := Decide(observed(v, s)).Status.MigrationState
			require.Equal(t, tt.want, state{Mode: is.Mode, TargetNodeAddress: is.TargetNodeAddress, TargetDirectMigrationNodePorts: is.TargetDirectMigrationNodePorts})
		})
	}
}

func TestTheSourceThatWasRestartedReportsWhereToWhenItKnowsIt(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseRunning, leaving, settledBefore)
	s := session(v, at(protocol.MigrationSends))
	s.State.Machine = "pc-q35-7.2"
	v.Status = *Decide(observed(v, s)).Status
	require.Empty(t, v.Status.MigrationState.TargetNodeAddress)
	s.Move = Move{UID: "m1", Peer: "10.0.0.2:8186"}
	p := Decide(observed(v, s))
	require.Equal(t, "10.0.0.2", p.Status.MigrationState.TargetNodeAddress)
	require.Empty(t, p.Events)
}

func TestTheSwitchIsTrueWhateverWasWrittenBefore(t *testing.T) {
	t.Parallel()
	removed := vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionUnknown, Reason: vmi.ReasonPodRemoved}
	unknown := vmi.Condition{Type: vmi.ConditionPaused, Status: corev1.ConditionTrue, Reason: ReasonMigrationOutcomeUnknown}
	v := instance(vmi.PhaseRunning, moving, withCondition(removed), withCondition(unknown))
	v.Status.MigrationState.Failed, v.Status.MigrationState.Completed, v.Status.MigrationState.FailureReason = true, true, "Target pod is down"
	p := Decide(observed(v, session(v, at(protocol.MigrationArrived))))
	require.False(t, p.Status.MigrationState.Failed)
	require.Empty(t, p.Status.MigrationState.FailureReason)
	require.Equal(t, node, p.Status.NodeName)
	require.Nil(t, p.Status.Condition(vmi.ConditionPaused))
	require.Equal(t, corev1.ConditionTrue, p.Status.Condition(vmi.ConditionReady).Status)

	ended := session(v, at(protocol.MigrationArrived))
	ended.State.Phase, ended.State.End = protocol.Ended, &protocol.End{Reason: protocol.Shutdown}
	require.Nil(t, Decide(observed(v, ended)).Status, "the guest may run on where it was, as virt-controller had its node do")
	v.Status.MigrationState.Failed, v.Status.MigrationState.Completed = false, false
	p = Decide(observed(v, ended))
	require.Equal(t, vmi.PhaseRunning, p.Status.Phase)
	v.Status = *p.Status
	require.Equal(t, vmi.PhaseSucceeded, Decide(observed(v, ended)).Status.Phase, "its end follows")
}

func TestATargetReportsNothingBeforeItsGuestRuns(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseRunning, moving)
	other := at(protocol.MigrationArrived)
	other.Migration.UID = "m0"
	for name, s := range map[string]*protocol.State{
		"waits": at(""), "receives": at(protocol.MigrationReceives), "has discarded it": at(protocol.MigrationDiscarded), "arrived in another migration": other,
	} {
		require.Nil(t, Decide(observed(v, session(v, s))).Status, name)
	}
	unbound := session(v, at(protocol.MigrationArrived))
	unbound.Network = nil
	require.Equal(t, Plan{Actions: []Action{Bind{}}}, Decide(observed(v, unbound)), "after a restart the addresses are looked for first")
	unbound.Finding = &vmi.Finding{Reason: ReasonNetworkFailed}
	require.Equal(t, node, Decide(observed(v, unbound)).Status.NodeName, "and not without end")
}

func TestTheTargetOfAMigrationThatFailedIsStopped(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseRunning, moving)
	v.Status.MigrationState.Failed, v.Status.MigrationState.Completed = true, true
	s := session(v, at(protocol.MigrationReceives))
	s.Put.Role = vmi.RoleTarget
	p := Decide(observed(v, s))
	require.Nil(t, p.Status)
	require.Equal(t, &protocol.Stop{}, p.Actions[0].(Put).Stop)
	require.Equal(t, vmi.RoleTarget, p.Actions[0].(Put).Role)
}

func TestALauncherOfAnotherReleaseKeepsTheVMIOnItsNode(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseRunning, withCondition(vmi.Condition{Type: vmi.ConditionLiveMigratable, Status: corev1.ConditionTrue}), settledBefore)
	s := session(v, state(protocol.Running))
	s.State.Movable = false
	v.Status = *Decide(observed(v, s)).Status
	c := v.Status.Condition(vmi.ConditionLiveMigratable)
	require.Equal(t, corev1.ConditionFalse, c.Status)
	require.Equal(t, vmi.ReasonLauncherTooOld, c.Reason)
	s.State.Movable = true
	require.Nil(t, Decide(observed(v, s)).Status.Condition(vmi.ConditionLiveMigratable), "virt-controller says the rest")
}
