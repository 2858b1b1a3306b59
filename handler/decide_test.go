package handler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

const pod = "pod-1"

var now = time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)

// machine is a machine in a phase, handed over to this node.
func machine(phase vmi.Phase, options ...vmitest.Option) *vmi.VirtualMachineInstance {
	v := vmitest.New(append([]vmitest.Option{vmitest.WithGracePeriod(5)}, options...)...)
	v.Status.Phase = phase
	v.Status.NodeName = "n1"
	v.Status.ActivePods = map[types.UID]string{pod: "n1"}
	return v
}

func deleted(v *vmi.VirtualMachineInstance) { v.DeletionTimestamp = new(metav1.NewTime(now)) }

var plumbing = &Plumbing{Interfaces: []vmi.InterfaceStatus{{Name: "default", IP: "10.244.1.7", IPs: []string{"10.244.1.7"}}}}

func guestIn(phase GuestPhase) *Guest { return &Guest{Phase: phase, Machine: "pc-q35-7.2"} }

func TestALauncherIsToldOfNewSettings(t *testing.T) {
	t.Parallel()
	loud := config.Launcher{Verbosity: 4}
	link := &Link{PodUID: pod, Guest: guestIn(GuestRunning), Plumbing: plumbing, Put: &Wish{}}
	require.Empty(t, Decide(Observed{Instance: machine(vmi.Running), Link: link, Now: now}).Actions)
	require.Equal(t, []Action{Put{Wish{Settings: loud}}}, Decide(Observed{Instance: machine(vmi.Running), Link: link, Settings: loud, Now: now}).Actions)
	stopping := &Link{PodUID: pod, Guest: guestIn(GuestStopping), Plumbing: plumbing, Put: &Wish{Stop: true, Grace: 5 * time.Second}}
	require.Equal(t, []Action{Put{Wish{Stop: true, Grace: 5 * time.Second, Settings: loud}}},
		Decide(Observed{Instance: machine(vmi.Running, deleted), Link: stopping, Settings: loud, Now: now}).Actions, "it still stops")
}

func TestActions(t *testing.T) {
	t.Parallel()
	wish, stopWish := &Wish{}, &Wish{Stop: true, Grace: 5 * time.Second}
	shuttingDown := Tell{Event{Reason: EventShuttingDown, Message: "The guest is asked to power off"}}
	tests := []struct {
		name string
		v    *vmi.VirtualMachineInstance
		link *Link
		want []Action
	}{
		{"a machine that is gone is let go", nil, &Link{PodUID: pod}, []Action{Disconnect{}}},
		{"a machine that is gone and was never known needs nothing", nil, nil, nil},
		{"a machine that is not handed over is virt-controller's", machine(vmi.Scheduling), nil, nil},
		{"a machine without a pod is virt-controller's", func() *vmi.VirtualMachineInstance {
			v := machine(vmi.Scheduled)
			v.Status.ActivePods = nil
			return v
		}(), nil, nil},
		{"a machine that was handed over is connected to", machine(vmi.Scheduled), nil, []Action{Connect{pod}}},
		{"a running machine is connected to after a restart", machine(vmi.Running), nil, []Action{Connect{pod}}},
		{"a machine that ended is not looked for", machine(vmi.Succeeded), nil, nil},
		{"a machine that ended is let go", machine(vmi.Failed), &Link{PodUID: pod}, []Action{Disconnect{}}},
		{"a machine in another pod is another machine", machine(vmi.Scheduled), &Link{PodUID: "other", Guest: guestIn(GuestRunning)}, []Action{Disconnect{}, Connect{pod}}},
		{"a silent launcher is waited for", machine(vmi.Scheduled), &Link{PodUID: pod}, nil},
		{"a launcher that answers is given a network and the machine", machine(vmi.Scheduled), &Link{PodUID: pod, Guest: guestIn(GuestStarting)}, []Action{Plumb{}, Put{}}},
		{"a network that exists is not made again", machine(vmi.Scheduled), &Link{PodUID: pod, Guest: guestIn(GuestStarting), Plumbing: plumbing}, []Action{Put{}}},
		{"a machine that starts is left alone", machine(vmi.Scheduled), &Link{PodUID: pod, Guest: guestIn(GuestStarting), Plumbing: plumbing, Put: wish}, nil},
		{"a running machine is left alone", machine(vmi.Running), &Link{PodUID: pod, Guest: guestIn(GuestRunning), Plumbing: plumbing, Put: wish}, nil},
		{"a running machine is told again after a restart", machine(vmi.Running), &Link{PodUID: pod, Guest: guestIn(GuestRunning)}, []Action{Plumb{}, Put{}}},
		{"a deleted machine is asked to stop", machine(vmi.Running, deleted), &Link{PodUID: pod, Guest: guestIn(GuestRunning), Plumbing: plumbing, Put: wish}, []Action{Put{*stopWish}, shuttingDown}},
		{"a deleted machine is asked once", machine(vmi.Running, deleted), &Link{PodUID: pod, Guest: guestIn(GuestStopping), Plumbing: plumbing, Put: stopWish}, nil},
		{"a stop after a restart is asked for in silence", machine(vmi.Running, deleted), &Link{PodUID: pod, Guest: guestIn(GuestStopping)}, []Action{Put{*stopWish}}},
		{"a machine that is deleted before it started needs no network", machine(vmi.Scheduled, deleted), &Link{PodUID: pod, Guest: guestIn(GuestStarting)}, []Action{Put{*stopWish}, shuttingDown}},
		{"an end is reported and nothing else", machine(vmi.Running, deleted), &Link{PodUID: pod, Guest: guestIn(GuestEnded)}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, Decide(Observed{Instance: tt.v, Link: tt.link, Now: now}).Actions)
		})
	}
}

func TestRunningIsSaidInOneWrite(t *testing.T) {
	t.Parallel()
	v := machine(vmi.Scheduled, vmitest.WithCores(2), vmitest.WithMemory("256Mi"))
	v.Status.Conditions = []vmi.Condition{
		{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: notRunning},
		{Type: vmi.ConditionSynchronized, Status: corev1.ConditionFalse, Reason: "Earlier"},
	}
	overhead := resource.MustParse("90Mi")
	v.Status.Memory = &vmi.MemoryStatus{MemoryOverhead: &overhead}
	g := &Guest{Phase: GuestRunning, Emulated: true, Machine: "pc-q35-7.2", Disks: []vmi.VolumeStatus{{Name: "root", Target: "vda", Size: 1 << 30}}}
	p := Decide(Observed{Instance: v, Link: &Link{PodUID: pod, Guest: g, Plumbing: plumbing, Put: &Wish{}}, Now: now})

	memory, at := resource.MustParse("256Mi"), metav1.NewTime(now)
	require.Equal(t, &vmi.VirtualMachineInstanceStatus{
		Phase:                     vmi.Running,
		PhaseTransitionTimestamps: []vmi.PhaseTransitionTimestamp{{Phase: vmi.Running, PhaseTransitionTimestamp: at}},
		NodeName:                  "n1",
		ActivePods:                map[types.UID]string{pod: "n1"},
		Conditions: []vmi.Condition{
			{Type: vmi.ConditionReady, Status: corev1.ConditionTrue, LastTransitionTime: at},
			{
				Type: vmi.ConditionSoftwareEmulation, Status: corev1.ConditionTrue, Reason: "NoHardwareVirtualization", LastTransitionTime: at,
				Message: "The node has no usable hardware virtualization; the guest is emulated, which is much slower",
			},
		},
		Interfaces:         plumbing.Interfaces,
		VolumeStatus:       g.Disks,
		Memory:             &vmi.MemoryStatus{GuestAtBoot: &memory, GuestCurrent: &memory, GuestRequested: &memory, MemoryOverhead: &overhead},
		Machine:            &vmi.Machine{Type: "pc-q35-7.2"},
		CurrentCPUTopology: &vmi.CPUTopology{Cores: 2, Sockets: 1, Threads: 1},
		RuntimeUser:        107,
	}, p.Status)
	require.Equal(t, []Event{{Reason: EventStarted, Message: "The guest was started"}}, p.Events)

	v.Status = *p.Status
	again := Decide(Observed{Instance: v, Link: &Link{PodUID: pod, Guest: g, Plumbing: plumbing, Put: &Wish{}}, Now: now.Add(time.Hour)})
	require.Equal(t, Plan{Status: p.Status}, again, "a steady machine costs nothing")
}

func TestPhases(t *testing.T) {
	t.Parallel()
	end := func(reason string, ok bool) *Guest {
		return &Guest{Phase: GuestEnded, End: &End{Finding: Finding{reason, "the guest is off"}, Succeeded: ok}}
	}
	tests := []struct {
		name   string
		v      *vmi.VirtualMachineInstance
		guest  *Guest
		phase  vmi.Phase
		reason string
		ready  corev1.ConditionStatus
		event  *Event
	}{
		{"a guest that starts does not run", machine(vmi.Scheduled), guestIn(GuestStarting), vmi.Scheduled, "", "", nil},
		{"a guest that is paused runs, but is not ready", machine(vmi.Running), guestIn(GuestPaused), vmi.Running, "", corev1.ConditionFalse, nil},
		{"a guest that is stopping still runs", machine(vmi.Running, deleted), guestIn(GuestStopping), vmi.Running, "", corev1.ConditionTrue, nil},
		{"a guest that is stopped before it started never ran", machine(vmi.Scheduled, deleted), guestIn(GuestStopping), vmi.Scheduled, "", "", nil},
		{"a guest that powered off has succeeded", machine(vmi.Running), end("Shutdown", true), vmi.Succeeded, "Shutdown", corev1.ConditionFalse, &Event{false, EventStopped, "the guest is off"}},
		{"a guest that crashed has failed, with a warning", machine(vmi.Running), end("Crashed", false), vmi.Failed, "Crashed", corev1.ConditionFalse, &Event{true, EventStopped, "the guest is off"}},
		{"a guest that had to be switched off has failed, as its user wished", machine(vmi.Running, deleted), end("GracePeriodExceeded", false), vmi.Failed, "GracePeriodExceeded", corev1.ConditionFalse, &Event{false, EventDeleted, "the guest is off"}},
		{"a machine that cannot be made has failed", machine(vmi.Scheduled), end("CannotStart", false), vmi.Failed, "CannotStart", corev1.ConditionFalse, &Event{true, EventStopped, "the guest is off"}},
		{"an end that is not explained is a failure", machine(vmi.Running), guestIn(GuestEnded), vmi.Failed, "Unknown", corev1.ConditionFalse, &Event{true, EventStopped, "The launcher did not say how the guest ended"}},
		{"nothing is concluded from silence", machine(vmi.Running), nil, vmi.Running, "", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := Decide(Observed{Instance: tt.v, Link: &Link{PodUID: pod, Guest: tt.guest, Plumbing: plumbing, Put: &Wish{}}, Now: now})
			require.Equal(t, tt.phase, p.Status.Phase)
			require.Equal(t, tt.reason, p.Status.Reason)
			ready := corev1.ConditionStatus("")
			if c := p.Status.Condition(vmi.ConditionReady); c != nil {
				ready = c.Status
			}
			require.Equal(t, tt.ready, ready)
			require.Equal(t, tt.guest != nil && tt.guest.Phase == GuestPaused, p.Status.Condition(vmi.ConditionPaused) != nil)
			var want []Event
			if tt.event != nil {
				want = []Event{*tt.event}
			}
			require.Equal(t, want, p.Events)
		})
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	problem, other := &Finding{"NoDisk", "the image is missing"}, &Finding{"NetworkFailed", "no such link"}
	synced := func(f *Finding) vmitest.Option {
		return func(v *vmi.VirtualMachineInstance) {
			v.Status.Conditions = append(v.Status.Conditions, vmi.Condition{
				Type: vmi.ConditionSynchronized, Status: corev1.ConditionFalse, Reason: f.Reason, Message: f.Message,
			})
		}
	}
	starting := func(p *Finding) *Guest { return &Guest{Phase: GuestStarting, Problem: p} }
	tests := []struct {
		name    string
		v       *vmi.VirtualMachineInstance
		link    Link
		want    *Finding
		event   bool
		recheck time.Duration
	}{
		{"the launcher's problem is said", machine(vmi.Scheduled), Link{Guest: starting(problem)}, problem, true, 0},
		{"and not said twice", machine(vmi.Scheduled, synced(problem)), Link{Guest: starting(problem)}, problem, false, 0},
		{"and said anew when it is another", machine(vmi.Scheduled, synced(problem)), Link{Guest: starting(other)}, other, true, 0},
		{"it stays until the guest runs", machine(vmi.Scheduled, synced(problem)), Link{Guest: starting(nil)}, problem, false, 0},
		{"and is taken back then", machine(vmi.Running, synced(problem)), Link{Guest: guestIn(GuestRunning)}, nil, false, 0},
		{"a fault here is given a second", machine(vmi.Scheduled), Link{Guest: starting(nil), Fault: other, Since: now.Add(-300 * time.Millisecond)}, nil, false, 700 * time.Millisecond},
		{"and then said", machine(vmi.Scheduled), Link{Guest: starting(nil), Fault: other, Since: now.Add(-time.Second)}, other, true, 0},
		{"also of a launcher that cannot be reached", machine(vmi.Scheduled), Link{Fault: other, Since: now.Add(-time.Minute)}, other, true, 0},
		{"a machine that has ended has none", machine(vmi.Running, synced(problem)), Link{Guest: guestIn(GuestEnded), Fault: other}, nil, true, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.link.PodUID, tt.link.Plumbing, tt.link.Put = pod, plumbing, &Wish{}
			p := Decide(Observed{Instance: tt.v, Link: &tt.link, Now: now})
			var got *Finding
			if c := p.Status.Condition(vmi.ConditionSynchronized); c != nil {
				require.Equal(t, corev1.ConditionFalse, c.Status)
				got = &Finding{c.Reason, c.Message}
			}
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.event, len(p.Events) > 0)
			require.Equal(t, tt.recheck, p.Recheck)
		})
	}
}
