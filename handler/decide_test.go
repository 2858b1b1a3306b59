package handler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

const (
	pod  = "pod-1"
	node = "n1"
)

var now = time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)

// instance is a VMI in a phase, handed over to this node.
func instance(phase vmi.Phase, options ...vmitest.Option) *vmi.VirtualMachineInstance {
	v := vmitest.New(vmitest.WithGracePeriod(5), vmitest.WithEmptyDisk("root", "1Gi"))
	v.Status.Phase = phase
	v.Status.NodeName = node
	v.Status.ActivePods = map[types.UID]string{pod: node}
	for _, option := range options {
		option(v)
	}
	return v
}

func deleted(v *vmi.VirtualMachineInstance) { v.DeletionTimestamp = new(metav1.NewTime(now)) }

// unreadable makes the VMI one that cannot be decoded.
func unreadable(v *vmi.VirtualMachineInstance) {
	v.Spec = vmi.VirtualMachineInstanceSpec{}
	vmi.SetUnreadable(v, &vmi.UnreadableError{Fields: []vmi.UnreadableField{{Path: "spec.hostname", Value: "1", Message: "must be a string"}}})
}

func withCondition(c vmi.Condition) vmitest.Option {
	return func(v *vmi.VirtualMachineInstance) { v.Status.Conditions = append(v.Status.Conditions, c) }
}

var bound = &Network{
	Interfaces:  []vmi.InterfaceStatus{{Name: "default", IP: "10.244.1.7", IPs: []string{"10.244.1.7"}}},
	Attachments: []network.Attachment{{Name: "default", Tap: "tap0"}},
}

func state(phase protocol.Phase) *protocol.State {
	return &protocol.State{Phase: phase, Machine: "pc-q35-7.2", Movable: true}
}

// desired is what is put for the VMI with this generation.
func desired(v *vmi.VirtualMachineInstance, generation int64, stop *protocol.Stop) *protocol.Desired {
	return &protocol.Desired{Generation: generation, Instance: forLauncher(v, node), Interfaces: bound.Attachments, Stop: stop}
}

// session is a session that is complete: the network is bound and the VMI put.
func session(v *vmi.VirtualMachineInstance, s *protocol.State) *Session {
	return &Session{Began: now, State: s, Network: bound, Put: desired(v, 1, nil), Generation: 1, Since: now}
}

func observed(v *vmi.VirtualMachineInstance, s *Session) Observed {
	o := Observed{Instance: v, Node: node, Session: s, Now: now}
	if pods := Pods(v, node); len(pods) > 0 {
		o.Pod = pods[0]
	}
	return o
}

func TestActions(t *testing.T) {
	t.Parallel()
	grace := &protocol.Stop{GracePeriodSeconds: 5}
	shuttingDown := Emit{normal(EventShuttingDown, "The guest is asked to power off")}
	in := func(s *protocol.State, n *Network, put *protocol.Desired) *Session {
		return &Session{Began: now, State: s, Network: n, Put: put, Generation: 7}
	}
	over := func(s *Session) *Session {
		s.Over = true
		return s
	}
	put := func(d *protocol.Desired) Put {
		d.Generation = 8
		return Put{*d}
	}
	unbound := func(d *protocol.Desired) *protocol.Desired {
		d.Interfaces = nil
		return d
	}
	elsewhere := func(v *vmi.VirtualMachineInstance) {
		v.Status.NodeName = "n2"
		v.Status.ActivePods["pod-2"] = "n2"
	}
	scheduled, runs, ends := instance(vmi.PhaseScheduled), instance(vmi.PhaseRunning), instance(vmi.PhaseRunning, deleted)
	atOnce := instance(vmi.PhaseRunning, deleted, func(v *vmi.VirtualMachineInstance) { v.Spec.TerminationGracePeriodSeconds = new(int64) })
	tests := []struct {
		name    string
		v       *vmi.VirtualMachineInstance
		session *Session
		want    []Action
	}{
		{"the session of a VMI that is gone is ended", nil, &Session{}, []Action{Disconnect{}}},
		{"a VMI that is gone and has no session needs nothing", nil, nil, nil},
		{"the guest of a VMI that is gone has the grace period of its pod", nil, in(state(protocol.Running), bound, desired(runs, 7, nil)), []Action{Disconnect{}}},
		{"the guest of a VMI that has ended and is gone is switched off", nil, over(in(state(protocol.Running), bound, desired(runs, 7, nil))), []Action{Disconnect{Destroy: true}}},
		{"the guest of a VMI that has ended is switched off", instance(vmi.PhaseFailed), over(in(state(protocol.Paused), bound, desired(runs, 7, nil))), []Action{Disconnect{Destroy: true}}},
		{"the guest of such a VMI is switched off also before the VMI was put again", instance(vmi.PhaseFailed), over(in(state(protocol.Running), nil, nil)), []Action{Disconnect{Destroy: true}}},
		{"the guest of such a VMI may run where the launcher does not answer", instance(vmi.PhaseFailed), over(in(nil, nil, nil)), []Action{Disconnect{Destroy: true}}},
		{"a guest of such a VMI that is being stopped has no more time", instance(vmi.PhaseFailed), over(in(state(protocol.Stopping), bound, desired(runs, 7, grace))), []Action{Disconnect{Destroy: true}}},
		{"a guest that has ended needs no stop", instance(vmi.PhaseFailed), over(in(&protocol.State{Phase: protocol.Ended}, bound, desired(runs, 7, nil))), []Action{Disconnect{}}},
		{"a launcher that waits may have been put the VMI", instance(vmi.PhaseFailed), over(in(state(protocol.Waiting), bound, nil)), []Action{Disconnect{Destroy: true}}},
		{"a VMI that is not handed over is virt-controller's", instance(vmi.PhaseScheduling), nil, nil},
		{"a VMI without a pod is virt-controller's", instance(vmi.PhaseScheduled, func(v *vmi.VirtualMachineInstance) { v.Status.ActivePods = nil }), nil, nil},
		{"a VMI that was handed over is connected to", scheduled, nil, []Action{Connect{pod}}},
		{"a running VMI is connected to after a restart", runs, nil, []Action{Connect{pod}}},
		{"a VMI that ended is not connected to", instance(vmi.PhaseSucceeded), nil, nil},
		{"the session of a VMI that ended is ended", instance(vmi.PhaseFailed), &Session{}, []Action{Disconnect{}}},
		{"a VMI whose pods are on other nodes is not connected to", instance(vmi.PhaseRunning, func(v *vmi.VirtualMachineInstance) {
			v.Status.NodeName, v.Status.ActivePods = "n2", map[types.UID]string{"pod-2": "n2"}
		}), nil, nil},
		{"a pod without a role is not connected to", instance(vmi.PhaseRunning, elsewhere), nil, nil},
		{"the session with a pod that has no role is ended", instance(vmi.PhaseRunning, elsewhere), in(state(protocol.Waiting), nil, nil), []Action{Disconnect{}}},
		{"a launcher that does not answer is waited for", scheduled, in(nil, nil, nil), nil},
		{"the network is bound before the VMI is put", scheduled, in(state(protocol.Waiting), nil, nil), []Action{Bind{}}},
		{"the VMI is put when the network is bound", scheduled, in(state(protocol.Waiting), bound, nil), []Action{put(desired(scheduled, 0, nil))}},
		{"a VMI that starts needs nothing", scheduled, in(state(protocol.Starting), bound, desired(scheduled, 7, nil)), nil},
		{"a running VMI needs nothing", runs, in(state(protocol.Running), bound, desired(runs, 7, nil)), nil},
		{"a running VMI gets its network after a restart", runs, in(state(protocol.Running), nil, nil), []Action{Bind{}}},
		{"a deleted VMI is stopped", ends, in(state(protocol.Running), bound, desired(ends, 7, nil)), []Action{put(desired(ends, 0, grace)), shuttingDown}},
		{"a paused guest is switched off", ends, in(state(protocol.Paused), bound, desired(ends, 7, nil)),
			[]Action{put(desired(ends, 0, grace)), Emit{normal(EventShuttingDown, "The guest is paused and is switched off")}}},
		{"a guest that a signal stands still has its grace period", ends, in(&protocol.State{Phase: protocol.Paused, Pause: &protocol.Pause{Cause: protocol.PausedBySignal}}, bound, desired(ends, 7, nil)),
			[]Action{put(desired(ends, 0, grace)), shuttingDown}},
		{"a guest without a grace period is switched off", atOnce, in(state(protocol.Running), bound, desired(atOnce, 7, nil)),
			[]Action{put(desired(atOnce, 0, &protocol.Stop{})), Emit{normal(EventShuttingDown, "The guest is switched off: its grace period is 0 seconds")}}},
		{"a deleted VMI is stopped once", ends, in(state(protocol.Stopping), bound, desired(ends, 7, grace)), nil},
		{"a stop after a restart has no event", ends, in(state(protocol.Stopping), nil, nil), []Action{put(unbound(desired(ends, 0, grace)))}},
		{"a VMI that is deleted before it started needs no network", instance(vmi.PhaseScheduled, deleted), in(state(protocol.Starting), nil, nil),
			[]Action{put(unbound(desired(instance(vmi.PhaseScheduled, deleted), 0, grace))), shuttingDown}},
		{"an end is only reported", ends, in(state(protocol.Ended), nil, nil), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, Decide(observed(tt.v, tt.session)).Actions)
		})
	}
}

// moving makes the VMI one that moves from n2 to this node.
func moving(v *vmi.VirtualMachineInstance) {
	v.Status.NodeName = "n2"
	v.Status.ActivePods["pod-2"] = "n2"
	v.Status.MigrationState = &vmi.MigrationState{MigrationUID: "m1", SourceNode: "n2", TargetNode: node}
}

func TestTheRoleOfAPodFollowsFromTheStatus(t *testing.T) {
	t.Parallel()
	change := func(f func(*vmi.MigrationState)) vmitest.Option {
		return func(v *vmi.VirtualMachineInstance) { f(v.Status.MigrationState) }
	}
	arrived := func(v *vmi.VirtualMachineInstance) { v.Status.NodeName = node }
	active, target := []Pod{{UID: pod}}, []Pod{{UID: pod, Role: vmi.RoleTarget}}
	for name, tt := range map[string]struct {
		v    *vmi.VirtualMachineInstance
		want []Pod
	}{
		"no VMI":                                  {nil, nil},
		"a VMI that runs here":                    {instance(vmi.PhaseRunning), active},
		"one that is not handed over":             {instance(vmi.PhaseScheduling), nil},
		"one that moves here":                     {instance(vmi.PhaseRunning, moving), target},
		"one that moves elsewhere":                {instance(vmi.PhaseRunning, moving, change(func(m *vmi.MigrationState) { m.TargetNode = "n3" })), nil},
		"one that has arrived":                    {instance(vmi.PhaseRunning, moving, arrived), active},
		"one that was to move here and did not":   {instance(vmi.PhaseRunning, moving, change(func(m *vmi.MigrationState) { m.Failed = true })), target},
		"one that has been here":                  {instance(vmi.PhaseRunning, moving, change(func(m *vmi.MigrationState) { m.Completed = true })), nil},
		"one that moves here and has no pod here": {instance(vmi.PhaseRunning, moving, func(v *vmi.VirtualMachineInstance) { delete(v.Status.ActivePods, pod) }), nil},
		"one that moves here and has ended":       {instance(vmi.PhaseFailed, moving), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, Pods(tt.v, node))
		})
	}
}

func TestATargetIsPreparedAndReportsNothing(t *testing.T) {
	t.Parallel()
	v, ends := instance(vmi.PhaseRunning, moving), instance(vmi.PhaseRunning, moving, deleted)
	target := func(v *vmi.VirtualMachineInstance, stop *protocol.Stop) *protocol.Desired {
		d := desired(v, 7, stop)
		d.Role = vmi.RoleTarget
		return d
	}
	put := func(d *protocol.Desired) []Action {
		d.Generation = 8
		return []Action{Put{*d}}
	}
	in := func(s *protocol.State, n *Network, put *protocol.Desired) *Session {
		return &Session{Began: now.Add(-time.Hour), Since: now.Add(-time.Hour), State: s, Network: n, Put: put, Generation: 7}
	}
	failed := in(state(protocol.Waiting), nil, nil)
	failed.Finding = &vmi.Finding{Reason: ReasonNetworkFailed}
	for name, tt := range map[string]struct {
		v       *vmi.VirtualMachineInstance
		session *Session
		want    []Action
	}{
		"a launcher that is not connected to":    {v, nil, []Action{Connect{pod}}},
		"one that does not answer":               {v, in(nil, nil, nil), nil},
		"one that waits":                         {v, in(state(protocol.Waiting), nil, nil), []Action{Bind{}}},
		"one whose network cannot be bound":      {v, failed, []Action{Bind{}}},
		"one with its network":                   {v, in(state(protocol.Waiting), bound, nil), put(target(v, nil))},
		"one that is prepared":                   {v, in(state(protocol.Waiting), bound, target(v, nil)), nil},
		"one that was put the VMI to run":        {v, in(state(protocol.Waiting), bound, desired(v, 7, nil)), put(target(v, nil))},
		"one that has ended":                     {v, in(&protocol.State{Phase: protocol.Ended, End: &protocol.End{Reason: protocol.Cancelled}}, bound, target(v, nil)), nil},
		"one that claims that the guest crashed": {v, in(&protocol.State{Phase: protocol.Ended, End: &protocol.End{Reason: protocol.Crashed}}, bound, target(v, nil)), nil},
		"one that claims that the guest runs":    {v, in(state(protocol.Running), bound, target(v, nil)), nil},
		"one of a VMI that is deleted":           {ends, in(state(protocol.Waiting), bound, target(v, nil)), put(target(ends, &protocol.Stop{GracePeriodSeconds: 5}))}, // its guest may have come
		"one of a VMI that cannot be decoded":    {instance(vmi.PhaseRunning, moving, unreadable), in(state(protocol.Waiting), bound, nil), nil},
		"one that the VMI has arrived at": {instance(vmi.PhaseRunning, moving, func(v *vmi.VirtualMachineInstance) { v.Status.NodeName = node }),
			in(state(protocol.Running), bound, target(v, nil)), put(desired(v, 7, nil))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Decide(observed(tt.v, tt.session))
			require.Equal(t, tt.want, p.Actions)
			if tt.v.Status.NodeName != node {
				require.Nil(t, p.Status, "the handler of the active pod reports")
				require.Empty(t, p.Events)
			}
		})
	}
}

func TestAGuestThatMovedAwayEndsNoVMI(t *testing.T) {
	t.Parallel()
	leaves := func(m *vmi.MigrationState) *vmi.VirtualMachineInstance {
		return instance(vmi.PhaseRunning, func(v *vmi.VirtualMachineInstance) { v.Status.MigrationState = m })
	}
	moved := &protocol.State{Phase: protocol.Ended, End: &protocol.End{Reason: protocol.MovedAway, Message: "the guest runs in another pod"}}
	for name, tt := range map[string]struct {
		m    *vmi.MigrationState
		ends bool
	}{
		"a migration from here":        {&vmi.MigrationState{SourceNode: node, TargetNode: "n2"}, false},
		"a migration that failed":      {&vmi.MigrationState{SourceNode: node, TargetNode: "n2", Failed: true}, true},
		"a migration from elsewhere":   {&vmi.MigrationState{SourceNode: "n2", TargetNode: node, Completed: true}, true},
		"a launcher that only says so": {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := leaves(tt.m)
			p := Decide(observed(v, session(v, moved)))
			if !tt.ends {
				require.Equal(t, Plan{}, p)
				return
			}
			require.Equal(t, vmi.PhaseFailed, p.Status.Phase)
			require.Equal(t, "MovedAway", p.Status.Reason)
		})
	}
}

func TestWhatIsDesiredIsPutAgainWhenItChanges(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseRunning)
	debug := config.Launcher{Verbosity: 4}
	tests := []struct {
		name   string
		change func(*Observed)
		want   func(*protocol.Desired)
	}{
		{"nothing", func(*Observed) {}, nil},
		{"the status", func(o *Observed) { o.Instance.Status.Reason = "Other" }, nil},
		{"the resource version", func(o *Observed) { o.Instance.ResourceVersion = "9" }, nil},
		{"the settings", func(o *Observed) { o.Settings = debug }, func(d *protocol.Desired) { d.Settings = debug }},
		{"the spec", func(o *Observed) { o.Instance.Spec.Hostname = "other" }, func(d *protocol.Desired) { d.Instance.Spec.Hostname = "other" }},
		{"the network", func(o *Observed) { o.Session.Network = &Network{} }, func(d *protocol.Desired) { d.Interfaces = nil }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := observed(v.DeepCopy(), session(v, state(protocol.Running)))
			o.Session.Generation = 4 // an attempt of which the outcome is not known
			tt.change(&o)
			var want []Action
			if tt.want != nil {
				d := desired(v.DeepCopy(), 5, nil)
				tt.want(d)
				want = []Action{Put{*d}}
			}
			require.Equal(t, want, Decide(o).Actions)
		})
	}
}

func TestAStopWithNewSettingsIsPutWithoutAnotherEvent(t *testing.T) {
	t.Parallel()
	v, grace := instance(vmi.PhaseRunning, deleted), &protocol.Stop{GracePeriodSeconds: 5}
	s := session(v, state(protocol.Running))
	s.Put.Stop = grace
	o := observed(v, s)
	o.Settings.Verbosity = 4
	want := desired(v, 2, grace)
	want.Settings.Verbosity = 4
	require.Equal(t, []Action{Put{*want}}, Decide(o).Actions)
}

func TestALauncherIsGivenThePlacesOfDisksAndNothingElseOfTheStatus(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseRunning)
	info := &vmi.PersistentVolumeClaimInfo{ClaimName: "data"}
	v.Status.VolumeStatus = []vmi.VolumeStatus{{Name: "data", PersistentVolumeClaimInfo: info}}
	s := session(v.DeepCopy(), state(protocol.Running))
	v.Status.VolumeStatus = []vmi.VolumeStatus{{Name: "root", Target: "vda", Size: 1 << 30}, {Name: "later"}, {Name: "data", PersistentVolumeClaimInfo: info}}
	require.Empty(t, Decide(observed(v, s)).Actions, "that a place was reported is no change")

	grown := v.DeepCopy()
	grown.Status.VolumeStatus[2].PersistentVolumeClaimInfo.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
	require.IsType(t, Put{}, Decide(observed(grown, s)).Actions[0], "that a claim has grown is one")

	s.Put = nil
	put := Decide(observed(v, s)).Actions[0].(Put)
	require.Equal(t, vmi.VirtualMachineInstanceStatus{VolumeStatus: []vmi.VolumeStatus{{Name: "root", Target: "vda"}, {Name: "data", PersistentVolumeClaimInfo: info}}}, put.Instance.Status)
	require.Equal(t, v.Spec, put.Instance.Spec)
}
