package handler

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestRunningIsOneWrite(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseScheduled, vmitest.WithCores(2), vmitest.WithMemory("256Mi"))
	v.Status.Conditions = []vmi.Condition{
		{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: vmi.ReasonGuestNotRunning},
		{Type: vmi.ConditionSynchronized, Status: corev1.ConditionFalse, Reason: "Earlier"},
	}
	overhead := resource.MustParse("90Mi")
	v.Status.Memory = &vmi.MemoryStatus{MemoryOverhead: &overhead}
	v.Spec.Domain.Firmware = &vmi.Firmware{KernelBoot: &vmi.KernelBoot{Container: &vmi.KernelBootContainer{Image: "example/kernel:1", KernelPath: "/kernel"}}}
	kernel := &vmi.KernelBootStatus{KernelInfo: &vmi.BootFileInfo{Checksum: 7}}
	v.Spec.Domain.Devices.AutoattachVSOCK = new(true)
	s := &protocol.State{Phase: protocol.Running, Movable: true, Emulated: true, Machine: "pc-q35-7.2", KernelBoot: kernel, VSOCKCID: 5, Disks: []protocol.Disk{
		{Name: "root", Target: "vda", SizeBytes: 1 << 30},
		{Name: "root", Target: "vdb"}, {Name: "nosuch", Target: "vdc"},
	}}
	p := Decide(observed(v, session(v, s)))

	memory, at := resource.MustParse("256Mi"), metav1.NewTime(now)
	require.Equal(t, &vmi.VirtualMachineInstanceStatus{
		Phase:                     vmi.PhaseRunning,
		PhaseTransitionTimestamps: []vmi.PhaseTransitionTimestamp{{Phase: vmi.PhaseRunning, PhaseTransitionTimestamp: at}},
		NodeName:                  node,
		ActivePods:                map[types.UID]string{pod: node},
		Conditions: []vmi.Condition{
			{Type: vmi.ConditionReady, Status: corev1.ConditionTrue, LastTransitionTime: at},
			{
				Type: vmi.ConditionSoftwareEmulation, Status: corev1.ConditionTrue, Reason: "NoHardwareVirtualization", LastTransitionTime: at,
				Message: "The node has no usable hardware virtualization; the guest is emulated, which is much slower",
			},
		},
		Interfaces:         bound.Interfaces,
		VolumeStatus:       []vmi.VolumeStatus{{Name: "root", Target: "vda", Size: 1 << 30}},
		Memory:             &vmi.MemoryStatus{GuestAtBoot: &memory, GuestCurrent: &memory, GuestRequested: &memory, MemoryOverhead: &overhead},
		Machine:            &vmi.Machine{Type: "pc-q35-7.2"},
		CurrentCPUTopology: &vmi.CPUTopology{Cores: 2, Sockets: 1, Threads: 1},
		RuntimeUser:        107,
		KernelBootStatus:   kernel,
		VSOCKCID:           new(uint32(5)),
	}, p.Status)
	require.Equal(t, []Event{normal(EventStarted, "The guest was started")}, p.Events)

	v.Status = *p.Status
	o := observed(v, session(v, s))
	o.Now = now.Add(time.Hour)
	require.Equal(t, Plan{Status: p.Status}, Decide(o), "a VMI that runs causes no writes and no rechecks")
	s.KernelBoot = &vmi.KernelBootStatus{KernelInfo: &vmi.BootFileInfo{Checksum: 8}}
	require.Equal(t, Plan{Status: p.Status}, Decide(o), "a launcher that reports another kernel causes none either")
	s.VSOCKCID = 6
	require.Equal(t, Plan{Status: p.Status}, Decide(o), "nor one that reports another number of the guest")
}

func TestAttackAGuestWithoutSocketsToItsNodeHasNoNumber(t *testing.T) {
	t.Parallel()
	for name, on := range map[string]*bool{"not asked for": nil, "switched off": new(false)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := instance(vmi.PhaseScheduled)
			v.Spec.Domain.Devices.AutoattachVSOCK = on
			p := Decide(observed(v, session(v, &protocol.State{Phase: protocol.Running, VSOCKCID: 5})))
			require.Equal(t, vmi.PhaseRunning, p.Status.Phase)
			require.Nil(t, p.Status.VSOCKCID)
		})
	}
}

func TestPhases(t *testing.T) {
	t.Parallel()
	const off = "the guest is off"
	end := func(reason protocol.EndReason) *protocol.State {
		return &protocol.State{Phase: protocol.Ended, End: &protocol.End{Reason: reason, Message: off}}
	}
	tests := []struct {
		name   string
		v      *vmi.VirtualMachineInstance
		state  *protocol.State
		phase  vmi.Phase
		reason string
		ready  corev1.ConditionStatus
		event  *Event
	}{
		{"a guest that starts does not run", instance(vmi.PhaseScheduled), state(protocol.Starting), vmi.PhaseScheduled, "", "", nil},
		{"a guest that is paused runs and is not ready", instance(vmi.PhaseRunning), state(protocol.Paused), vmi.PhaseRunning, "Paused", corev1.ConditionFalse, nil},
		{"a guest that is stopping runs", instance(vmi.PhaseRunning, deleted), state(protocol.Stopping), vmi.PhaseRunning, "", corev1.ConditionTrue, nil},
		{"a guest that is stopped before it started never ran", instance(vmi.PhaseScheduled, deleted), state(protocol.Stopping), vmi.PhaseScheduled, "", "", nil},
		{"a guest that powered off has succeeded", instance(vmi.PhaseRunning), end(protocol.Shutdown), vmi.PhaseSucceeded, "Shutdown", corev1.ConditionFalse, new(normal(EventStopped, off))},
		{"a guest that crashed has failed, with a warning", instance(vmi.PhaseRunning), end(protocol.Crashed), vmi.PhaseFailed, "Crashed", corev1.ConditionFalse, new(warning(EventStopped, off))},
		{"a guest that was killed after its deletion has failed, without a warning", instance(vmi.PhaseRunning, deleted), end(protocol.Killed),
			vmi.PhaseFailed, "GracePeriodExceeded", corev1.ConditionFalse, new(normal(EventDeleted, off))},
		{"a guest that was stopped before it ran has failed, with a warning", instance(vmi.PhaseScheduled), end(protocol.Cancelled), vmi.PhaseFailed, "Cancelled", corev1.ConditionFalse, new(warning(EventStopped, off))},
		{"a guest whose VMI was deleted before it ran has failed, without a warning", instance(vmi.PhaseScheduled, deleted), end(protocol.Cancelled),
			vmi.PhaseFailed, "Cancelled", corev1.ConditionFalse, new(normal(EventDeleted, "the VMI was deleted before its guest ran"))},
		{"a domain that cannot be created has failed", instance(vmi.PhaseScheduled), end(protocol.CannotStart), vmi.PhaseFailed, "CannotStart", corev1.ConditionFalse, new(warning(EventStopped, off))},
		{"an end without a reason is a failure", instance(vmi.PhaseRunning), state(protocol.Ended), vmi.PhaseFailed, "Unknown", corev1.ConditionFalse,
			new(warning(EventStopped, "The launcher did not report how the guest ended"))},
		{"a launcher that does not answer does not end a running VMI", instance(vmi.PhaseRunning), nil, vmi.PhaseRunning, "", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := Decide(observed(tt.v, session(tt.v, tt.state)))
			require.Equal(t, tt.phase, p.Status.Phase)
			require.Equal(t, tt.reason, p.Status.Reason)
			ready := corev1.ConditionStatus("")
			if c := p.Status.Condition(vmi.ConditionReady); c != nil {
				ready = c.Status
			}
			require.Equal(t, tt.ready, ready)
			require.Equal(t, tt.state != nil && tt.state.Phase == protocol.Paused, p.Status.Condition(vmi.ConditionPaused) != nil)
			var want []Event
			if tt.event != nil {
				want = []Event{*tt.event}
			}
			require.Equal(t, want, p.Events)
		})
	}
}

func TestAnEndWithThePodNamesWhatEndedThePod(t *testing.T) {
	t.Parallel()
	evicted := withCondition(vmi.Condition{Type: vmi.ConditionDisruptionTarget, Status: corev1.ConditionTrue, Reason: "Preempted", Message: "makes room"})
	tests := []struct {
		name            string
		v               *vmi.VirtualMachineInstance
		end             protocol.End
		phase           vmi.Phase
		reason, message string
		warns           bool
	}{
		{"a guest that powered off, as virt-controller has written", instance(vmi.PhaseRunning, evicted), protocol.End{Reason: protocol.Shutdown, Message: "off"}, vmi.PhaseSucceeded, "Preempted", "makes room; off", true},
		{"a guest that was killed, as virt-controller has written", instance(vmi.PhaseRunning, evicted), protocol.End{Reason: protocol.Killed, Message: "late", Terminated: true}, vmi.PhaseFailed, "Preempted", "makes room; late", true},
		{"a guest that powered off, and nothing is written", instance(vmi.PhaseRunning), protocol.End{Reason: protocol.Shutdown, Message: "off", Terminated: true},
			vmi.PhaseSucceeded, "Evicted", vmi.UnknownDisruption + "; off", true},
		{"a guest that was killed, and nothing is written", instance(vmi.PhaseRunning), protocol.End{Reason: protocol.Killed, Message: "late", Terminated: true},
			vmi.PhaseFailed, "Evicted", vmi.UnknownDisruption + "; late", true},
		{"a guest that had not run", instance(vmi.PhaseScheduled), protocol.End{Reason: protocol.Cancelled, Message: "not run", Terminated: true}, vmi.PhaseFailed, "Evicted", vmi.UnknownDisruption + "; not run", true},
		{"a guest that crashed meanwhile", instance(vmi.PhaseRunning, evicted), protocol.End{Reason: protocol.Crashed, Message: "signal 11", Terminated: true}, vmi.PhaseFailed, "Crashed", "signal 11", true},
		{"a guest that its user stopped", instance(vmi.PhaseRunning, evicted, deleted), protocol.End{Reason: protocol.Shutdown, Message: "off", Terminated: true}, vmi.PhaseSucceeded, "Shutdown", "off", false},
		{"a guest that powered itself off", instance(vmi.PhaseRunning), protocol.End{Reason: protocol.Shutdown, Message: "off"}, vmi.PhaseSucceeded, "Shutdown", "off", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := Decide(observed(tt.v, session(tt.v, &protocol.State{Phase: protocol.Ended, End: &tt.end})))
			require.Equal(t, tt.phase, p.Status.Phase)
			require.Equal(t, tt.reason, p.Status.Reason)
			require.Equal(t, tt.message, p.Status.Condition(vmi.ConditionReady).Message)
			require.Len(t, p.Events, 1)
			require.Equal(t, tt.warns, p.Events[0].Warning)
		})
	}
}

func TestWhatFailsIsACondition(t *testing.T) {
	t.Parallel()
	missing, link := &vmi.Finding{Reason: "NoDisk", Message: "the image is missing"}, &vmi.Finding{Reason: "NetworkFailed", Message: "no such link"}
	synced := func(f *vmi.Finding) vmitest.Option {
		return withCondition(vmi.Condition{Type: vmi.ConditionSynchronized, Status: corev1.ConditionFalse, Reason: f.Reason, Message: f.Message})
	}
	starting := func(f *vmi.Finding) *protocol.State {
		return &protocol.State{Phase: protocol.Starting, Finding: f}
	}
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	tests := []struct {
		name    string
		v       *vmi.VirtualMachineInstance
		session Session
		want    *vmi.Finding
		event   bool
		recheck time.Duration
	}{
		{"the launcher's finding", instance(vmi.PhaseScheduled), Session{State: starting(missing)}, missing, true, StartDeadline},
		{"the same finding again", instance(vmi.PhaseScheduled, synced(missing)), Session{State: starting(missing)}, missing, false, StartDeadline},
		{"another finding", instance(vmi.PhaseScheduled, synced(missing)), Session{State: starting(link)}, link, true, StartDeadline},
		{"the launcher's finding before the handler's", instance(vmi.PhaseScheduled), Session{State: starting(missing), Finding: link}, missing, true, StartDeadline},
		{"a finding stays until the guest runs", instance(vmi.PhaseScheduled, synced(missing)), Session{State: starting(nil)}, missing, false, StartDeadline},
		{"a finding is removed when the guest runs", instance(vmi.PhaseRunning, synced(missing)), Session{State: state(protocol.Running)}, nil, false, 0},
		{"a finding about a guest that runs", instance(vmi.PhaseRunning), Session{State: &protocol.State{Phase: protocol.Running, Finding: missing}}, missing, true, 0},
		{"the handler's finding in the first second", instance(vmi.PhaseScheduled), Session{State: starting(nil), Finding: link, Since: ago(300 * time.Millisecond)}, nil, false, 700 * time.Millisecond},
		{"the handler's finding after a second", instance(vmi.PhaseScheduled), Session{State: starting(nil), Finding: link, Since: ago(time.Second)}, link, true, StartDeadline},
		{"a launcher that has not answered in the first seconds", instance(vmi.PhaseScheduled), Session{Finding: link, Since: ago(time.Second)}, nil, false, 5 * time.Second},
		{"a launcher that does not answer", instance(vmi.PhaseScheduled), Session{Finding: link, Since: ago(6 * time.Second)}, link, true, StartDeadline},
		{"a launcher that does not answer and gives no error", instance(vmi.PhaseScheduled), Session{Since: ago(6 * time.Second)},
			&vmi.Finding{Reason: vmi.ReasonLauncherUnresponsive, Message: "the launcher does not answer"}, true, StartDeadline},
		{"a launcher that does not answer for a guest that ran", instance(vmi.PhaseRunning), Session{Finding: link, Since: ago(6 * time.Second)}, link, true, 0},
		{"a VMI that has ended has no finding", instance(vmi.PhaseRunning, synced(missing)), Session{State: state(protocol.Ended), Finding: link}, nil, true, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := session(tt.v, tt.session.State)
			s.Finding, s.Since = tt.session.Finding, tt.session.Since
			p := Decide(observed(tt.v, s))
			var got *vmi.Finding
			if c := p.Status.Condition(vmi.ConditionSynchronized); c != nil {
				require.Equal(t, corev1.ConditionFalse, c.Status)
				got = &vmi.Finding{Reason: c.Reason, Message: c.Message}
			}
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.event, len(p.Events) > 0)
			require.Equal(t, tt.recheck, p.Recheck)
		})
	}
}

func TestDisksThatTheSpecDoesNotHaveAreNotReported(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseScheduled)
	v.Spec.Volumes = []vmi.Volume{{Name: "root"}, {Name: "data"}}
	s := protocol.State{Phase: protocol.Running, Disks: []protocol.Disk{
		{Name: "invented", Target: "vdz"}, {Name: "root", Target: "vda", SizeBytes: 1<<63 - 1}, {Name: "root", Target: "vdb", SizeBytes: 1},
		{Name: "data", Target: strings.Repeat("v", 17)}, {Name: "data", Target: "vdc", SizeBytes: -1},
	}}.Sanitized()
	info := &vmi.PersistentVolumeClaimInfo{ClaimName: "data"}
	v.Status.VolumeStatus = []vmi.VolumeStatus{{Name: "data", PersistentVolumeClaimInfo: info}, {Name: "gone", PersistentVolumeClaimInfo: info}}
	require.Equal(t, []vmi.VolumeStatus{{Name: "root", Target: "vda", Size: 1 << 56}, {Name: "data", Target: "vdc", PersistentVolumeClaimInfo: info}}, volumes(v, s.Disks))
}
