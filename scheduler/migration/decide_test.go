package migration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/migration"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

var (
	now    = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	config = pod.Config{Launcher: pod.Launcher{Image: "example/virt-launcher:v2"}}
)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// move is a migration of the VMI in the phase, which began a minute ago.
func move(p vmi.MigrationPhase, change ...func(*vmi.VirtualMachineInstanceMigration)) *vmi.VirtualMachineInstanceMigration {
	m := &vmi.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "move", UID: "m1",
		CreationTimestamp: ago(time.Minute), Finalizers: []string{"kubevirt.io/migrationJobFinalize"}, Labels: map[string]string{"kubevirt.io/vmi-name": "testvmi"}}}
	m.Spec.VMIName, m.Status.Phase = "testvmi", p
	if p != "" {
		m.Status.PhaseTransitionTimestamps = []vmi.MigrationPhaseTimestamp{{Phase: p, PhaseTransitionTimestamp: ago(time.Second)}}
	}
	for _, c := range change {
		c(m)
	}
	return m
}

func deleted(m *vmi.VirtualMachineInstanceMigration) { m.DeletionTimestamp = new(ago(0)) }
func evacuates(m *vmi.VirtualMachineInstanceMigration) {
	m.Annotations = map[string]string{"kubevirt.io/evacuationMigration": "node1"}
}

// named makes the migration another one, which was made so long ago.
func named(name string, before time.Duration) func(*vmi.VirtualMachineInstanceMigration) {
	return func(m *vmi.VirtualMachineInstanceMigration) {
		m.Name, m.UID, m.CreationTimestamp = name, types.UID(name), ago(before)
	}
}

// running is the VMI on node1.
func running(change ...vmitest.Option) *vmi.VirtualMachineInstance {
	v := vmitest.New()
	v.CreationTimestamp = ago(time.Hour)
	v.Status.Phase, v.Status.NodeName, v.Status.ActivePods = vmi.PhaseRunning, "node1", map[types.UID]string{"p1": "node1"}
	for _, c := range change {
		c(v)
	}
	return v
}

// given is the VMI that was handed over to node2.
func given(v *vmi.VirtualMachineInstance) {
	v.Status.ActivePods["p2"] = "node2"
	v.Status.MigrationState = &vmi.MigrationState{MigrationUID: "m1", SourceNode: "node1", SourcePod: pod.Name(v), TargetNode: "node2", TargetPod: target().Name}
}

func begun(v *vmi.VirtualMachineInstance) {
	given(v)
	v.Status.MigrationState.StartTimestamp, v.Status.MigrationState.TargetNodeAddress = new(ago(time.Second)), "10.0.0.2"
}

func moved(v *vmi.VirtualMachineInstance) {
	begun(v)
	v.Status.NodeName = "node2"
	v.Status.MigrationState.Completed, v.Status.MigrationState.EndTimestamp = true, new(ago(0))
}

func stays(v *vmi.VirtualMachineInstance) {
	begun(v)
	s := v.Status.MigrationState
	s.Completed, s.Failed, s.FailureReason, s.EndTimestamp = true, true, "it does not converge", new(ago(0))
}

func launcher(change ...func(*corev1.Pod)) *corev1.Pod {
	p, err := pod.Render(vmitest.New(), config)
	if err != nil {
		panic(err)
	}
	p.UID, p.Spec.NodeName, p.Status.Phase = "p1", "node1", corev1.PodRunning
	runs(p)
	for _, c := range change {
		c(p)
	}
	return p
}

// target is the pod that the migration m1 moves the VMI to.
func target(change ...func(*corev1.Pod)) *corev1.Pod {
	c := config
	c.Role = pod.Target(move(""))
	p, err := pod.Render(vmitest.New(), c)
	if err != nil {
		panic(err)
	}
	p.UID, p.CreationTimestamp, p.Status.Phase = "p2", ago(30*time.Second), corev1.PodPending
	for _, c := range change {
		c(p)
	}
	return p
}

func runs(p *corev1.Pod) {
	if p.Spec.NodeName == "" {
		p.Spec.NodeName = "node2"
	}
	p.Status.Phase = corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: vmi.ComputeContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
}

func ends(code int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		runs(p)
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: ago(time.Second)}}
	}
}

func endedAgo(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State.Terminated.FinishedAt = ago(d) }
}

func leaving(p *corev1.Pod) { p.DeletionTimestamp = new(ago(0)) }
func placed(p *corev1.Pod)  { p.Spec.NodeName = "n2" }
func homeless(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes"}}
}

// observed is what is observed of the migration with the VMI and these pods.
func observed(m *vmi.VirtualMachineInstanceMigration, v *vmi.VirtualMachineInstance, pods ...*corev1.Pod) migration.Observed {
	o := migration.Observed{Migration: m, VMI: v, Pods: pods, Config: config, Now: now, HandedOver: now.Add(-time.Minute)}
	for _, p := range pods {
		if p.Labels[vmi.MigrationJobLabel] == string(m.UID) {
			o.Target = p
		}
	}
	return o
}

// brief is the plan with statuses as their phases.
func brief(p scheduler.Plan) string {
	var out []string
	for _, a := range p.Actions {
		switch a := a.(type) {
		case scheduler.WriteStatus[*vmi.VirtualMachineInstanceMigration]:
			out = append(out, string(a.Object.Status.Phase))
		case scheduler.WriteInstance:
			s := a.To.Status.MigrationState
			text := "vmi " + string(s.MigrationUID)
			if s.AbortRequested {
				text += " abort"
			}
			if s.Failed {
				text += " failed"
			} else if s.Completed {
				text += " on " + a.To.Status.NodeName
			}
			out = append(out, text)
		case scheduler.CreatePod:
			out = append(out, "create")
		case scheduler.DeletePod:
			out = append(out, "delete "+string(a.UID))
		case scheduler.DeleteObject:
			out = append(out, "delete itself")
		case scheduler.AddFinalizer:
			out = append(out, "keep")
		case scheduler.SetLabel:
			out = append(out, "label "+a.Key+"="+a.Value)
		case scheduler.RemoveFinalizer:
			out = append(out, "release")
		case scheduler.Emit:
			out = append(out, a.Reason)
		case scheduler.EmitFor:
			out = append(out, "vmi:"+a.Reason)
		case scheduler.AnnounceGuest:
			out = append(out, "announce")
		case scheduler.AcceptMigration:
			out = append(out, "accept "+string(a.Pod))
		case scheduler.StartMigration:
			switch {
			case a.Held:
				out = append(out, "hold "+string(a.Pod))
			case a.Over:
				out = append(out, "over "+string(a.Pod))
			default:
				out = append(out, "start "+string(a.Pod))
			}
		case scheduler.AbortMigration:
			out = append(out, "abort")
		default:
			out = append(out, fmt.Sprintf("%T", a))
		}
	}
	return strings.Join(out, ", ")
}

// asked is a call that was done that long ago, and refused one that was not.
func asked(d time.Duration) migration.Asked {
	return migration.Asked{Since: now.Add(-d), At: now.Add(-d)}
}

func refused(d time.Duration, reason string) migration.Asked {
	a := asked(d)
	a.Refusal = &vmi.Finding{Reason: reason, Message: "why"}
	return a
}

func TestDecide(t *testing.T) {
	t.Parallel()
	const failed = "Failed, FailedMigration, release"
	with := func(o migration.Observed, change func(*migration.Observed)) migration.Observed { change(&o); return o }
	turn := func(o *migration.Observed) { o.Turn = true }
	waits := func(m *vmi.VirtualMachineInstanceMigration) {
		m.Status.PhaseTransitionTimestamps[0].PhaseTransitionTimestamp = ago(time.Minute)
	}
	for name, tt := range map[string]struct {
		o       migration.Observed
		want    string
		recheck time.Duration
	}{
		// The queue.
		"it has a place":                        {with(observed(move(""), running(), launcher()), turn), "create, Scheduling, SuccessfulCreate", 0},
		"it has a place after it has waited":    {with(observed(move("Pending"), running(), launcher()), turn), "create, Scheduling, SuccessfulCreate", 0},
		"it has none":                           {observed(move(""), running(), launcher()), "Pending", 30 * time.Second},
		"it waits":                              {observed(move("Pending"), running(), launcher()), "", 30 * time.Second},
		"the webhook was not asked":             {observed(move("", func(m *vmi.VirtualMachineInstanceMigration) { m.Finalizers = nil }), running(), launcher()), "keep, Pending", 30 * time.Second},
		"the webhook labelled nothing":          {observed(move("", func(m *vmi.VirtualMachineInstanceMigration) { m.Finalizers, m.Labels = nil, nil }), running(), launcher()), "keep, label kubevirt.io/vmi-name=testvmi, Pending", 30 * time.Second},
		"the VMI does not run yet":              {with(observed(move(""), running(func(v *vmi.VirtualMachineInstance) { v.Status.Phase = vmi.PhaseScheduled }), launcher()), turn), "Pending", 30 * time.Second},
		"the VMI has another pod":               {with(observed(move(""), running(), launcher(), target(func(p *corev1.Pod) { p.Name, p.Labels[vmi.MigrationJobLabel] = "other", "m0" })), turn), "Pending", 30 * time.Second},
		"the pod that it left before has ended": {with(observed(move(""), running(), launcher(), target(ends(0), func(p *corev1.Pod) { p.Labels[vmi.MigrationJobLabel] = "m0" })), turn), "create, Scheduling, SuccessfulCreate", 0},
		"the VMI was left by a migration": {with(observed(move(""), running(given, func(v *vmi.VirtualMachineInstance) { v.Status.MigrationState.MigrationUID = "gone" }), launcher()), turn),
			"Pending", 30 * time.Second},
		"a quota": {with(observed(move("Pending"), running(), launcher()), func(o *migration.Observed) {
			o.Turn, o.Refusal = true, &vmi.Finding{Reason: "FailedCreate", Message: "pods is forbidden: exceeded quota: q"}
		}), "Pending, vmi:FailedCreate", 30 * time.Second},
		"a pod that is refused": {with(observed(move("Pending"), running(), launcher()), func(o *migration.Observed) {
			o.Refusal = &vmi.Finding{Reason: "FailedCreate", Message: "violates PodSecurity"}
		}), "vmi:FailedCreate", 30 * time.Second},
		"a pod that is refused again": {with(observed(move("Pending"), running(), launcher()), func(o *migration.Observed) {
			o.Refusal, o.Warned = &vmi.Finding{Reason: "FailedCreate", Message: "violates PodSecurity"}, true
		}), "", 30 * time.Second},

		// What never begins.
		"there is no VMI":           {observed(move("Pending"), nil), failed, 0},
		"the VMI is a later one":    {observed(move("Pending"), running(func(v *vmi.VirtualMachineInstance) { v.CreationTimestamp = ago(0) }), launcher()), failed, 0},
		"the VMI has ended":         {observed(move("Pending"), running(func(v *vmi.VirtualMachineInstance) { v.Status.Phase = vmi.PhaseSucceeded })), failed, 0},
		"the VMI is deleted":        {observed(move("Pending"), running(func(v *vmi.VirtualMachineInstance) { v.DeletionTimestamp = new(ago(0)) }), launcher()), failed, 0},
		"the VMI cannot move":       {with(observed(move(""), running(stuck), launcher()), turn), failed, 0},
		"it is deleted":             {observed(move("Pending", deleted), running(), launcher()), failed, 0},
		"it is deleted with a pod":  {observed(move("Scheduling", deleted), running(), launcher(), target(runs)), "delete p2, " + failed, 0},
		"another has the VMI":       {observed(move("Running"), running(given, func(v *vmi.VirtualMachineInstance) { v.Status.MigrationState.MigrationUID = "m0" }), launcher()), failed, 0},
		"its VMI has no state more": {observed(move("PreparingTarget"), running(), launcher(), target(runs)), "delete p2, " + failed, 0},
		"an older one has not ended": {with(observed(move(""), running(), launcher()), func(o *migration.Observed) {
			o.Others = []*vmi.VirtualMachineInstanceMigration{move("", named("m0", time.Hour))}
		}), failed, 0},
		"an older one has not begun": {with(observed(move("Scheduling"), running(), launcher(), target()), func(o *migration.Observed) {
			o.Others = []*vmi.VirtualMachineInstanceMigration{move("Pending", named("m0", time.Hour))}
		}), "", 14*time.Minute + 30*time.Second},
		"an older one has ended": {with(observed(move(""), running(), launcher()), func(o *migration.Observed) {
			o.Turn, o.Others = true, []*vmi.VirtualMachineInstanceMigration{move("Failed", named("m0", time.Hour))}
		}), "create, Scheduling, SuccessfulCreate", 0},
		"one of the same second has the lower UID": {with(observed(move(""), running(), launcher()), func(o *migration.Observed) {
			o.Others = []*vmi.VirtualMachineInstanceMigration{move("", named("m0", time.Minute))}
		}), failed, 0},
		"one of the same second has the higher UID": {with(observed(move(""), running(), launcher()), func(o *migration.Observed) {
			o.Turn, o.Others = true, []*vmi.VirtualMachineInstanceMigration{move("", named("m2", time.Minute))}
		}), "create, Scheduling, SuccessfulCreate", 0},

		// The target.
		"its pod was made and no phase written":           {observed(move(""), running(), launcher(), target()), "Scheduling", 14*time.Minute + 30*time.Second},
		"its pod waits":                                   {observed(move("Scheduling"), running(), launcher(), target()), "", 14*time.Minute + 30*time.Second},
		"a target that comes up on a network with others": {observed(move("Scheduling"), running(vmitest.WithMultus("lan", "lan")), launcher(), target(placed)), "announce", 14*time.Minute + 30*time.Second},
		"it was announced": {with(observed(move("Scheduling"), running(vmitest.WithMultus("lan", "lan")), launcher(), target(placed)), func(o *migration.Observed) { o.Calls.Announce = asked(time.Second) }),
			"", 9 * time.Second},
		"it is being announced": {with(observed(move("Scheduling"), running(vmitest.WithMultus("lan", "lan")), launcher(), target(placed)), func(o *migration.Observed) { o.Calls.Announce.Now = true }),
			"", 14*time.Minute + 30*time.Second},
		"the handler knows no such call": {with(observed(move("Scheduling"), running(vmitest.WithMultus("lan", "lan")), launcher(), target(placed)), func(o *migration.Observed) {
			o.Calls.Announce = refused(time.Second, vmi.RefusedNotFound)
		}), "", 9 * time.Second},
		"one whose guest is on a network with others has no node": {observed(move("Scheduling"), running(vmitest.WithMultus("lan", "lan")), launcher(), target(homeless)),
			"migrationTargetPodUnschedulable", 4*time.Minute + 30*time.Second},
		"there is no node":       {observed(move("Scheduling"), running(), launcher(), target(homeless)), "migrationTargetPodUnschedulable", 4*time.Minute + 30*time.Second},
		"there is no node still": {with(observed(move("Scheduling"), running(), launcher(), target(homeless)), func(o *migration.Observed) { o.Warned = true }), "", 4*time.Minute + 30*time.Second},
		"no other node has the processor": {with(observed(move("Scheduling"), running(), launcher(), target(homeless)), func(o *migration.Observed) { o.NoModel = true }),
			"migrationTargetPodUnschedulable, vmi:NoSuitableNodesForHostModelMigration", 4*time.Minute + 30*time.Second},
		"no other node has the processor still": {with(observed(move("Scheduling"), running(), launcher(), target(homeless)), func(o *migration.Observed) { o.Warned, o.NoModel = true, true }),
			"", 4*time.Minute + 30*time.Second},
		"there is no node for 5 minutes": {observed(move("Scheduling"), running(), launcher(), target(homeless, func(p *corev1.Pod) { p.CreationTimestamp = ago(5 * time.Minute) })),
			"delete p2, SuccessfulDelete, " + failed, 0},
		"there is no node for what the annotation says": {observed(move("Scheduling", func(m *vmi.VirtualMachineInstanceMigration) {
			m.Annotations = map[string]string{"kubevirt.io/migrationUnschedulablePodTimeoutSeconds": "30"}
		}), running(), launcher(), target(homeless)), "delete p2, SuccessfulDelete, " + failed, 0},
		"the annotation is no number": {observed(move("Scheduling", func(m *vmi.VirtualMachineInstanceMigration) {
			m.Annotations = map[string]string{"kubevirt.io/migrationUnschedulablePodTimeoutSeconds": "30s"}
		}), running(), launcher(), target(homeless)), "migrationTargetPodUnschedulable", 4*time.Minute + 30*time.Second},
		"its pod waits for 15 minutes": {observed(move("Scheduling"), running(), launcher(), target(func(p *corev1.Pod) { p.CreationTimestamp = ago(15 * time.Minute) })),
			"delete p2, SuccessfulDelete, " + failed, 0},
		"its pod waits for what the annotation says": {observed(move("Scheduling", func(m *vmi.VirtualMachineInstanceMigration) {
			m.Annotations = map[string]string{"kubevirt.io/migrationPendingPodTimeoutSeconds": "30"}
		}), running(), launcher(), target()), "delete p2, SuccessfulDelete, " + failed, 0},
		"its pod is gone":             {observed(move("Scheduling"), running(), launcher()), failed, 0},
		"its pod has ended":           {observed(move("Scheduling"), running(), launcher(), target(ends(1))), failed, 0},
		"its pod is deleted":          {observed(move("Scheduling"), running(), launcher(), target(leaving)), failed, 0},
		"its pod is beside the first": {observed(move("Scheduling"), running(), launcher(), target(runs, func(p *corev1.Pod) { p.Spec.NodeName = "node1" })), "delete p2, " + failed, 0},
		"its pod runs":                {observed(move("Scheduling"), running(), launcher(), target(runs)), "vmi m1, SuccessfulHandOver, accept p2", 0},
		"the VMI is about to end":     {observed(move("Scheduling"), running(), launcher(ends(1)), target(runs)), "", 2 * time.Second},
		"a sidecar is not ready": {observed(move("Scheduling"), running(), launcher(), target(runs, func(p *corev1.Pod) {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "share"})
		})), "", 0},
		"a mesh's container runs and is not ready": {observed(move("Scheduling"), running(), launcher(), target(runs, func(p *corev1.Pod) {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "istio-proxy", State: p.Status.ContainerStatuses[0].State})
		})), "vmi m1, SuccessfulHandOver, accept p2", 0},

		// It moves.
		"it was handed over just now": {with(observed(move("Scheduling"), running(given), launcher(), target(runs)), func(o *migration.Observed) {
			o.HandedOver, o.Calls.Accept.Now = now, true
		}), "", 2 * time.Second},
		"it was handed over 2 s ago": {with(observed(move("Scheduling"), running(given), launcher(), target(runs)), func(o *migration.Observed) {
			o.HandedOver, o.Calls.Accept.Now = now.Add(-2*time.Second), true
		}), "PreparingTarget", 60 * time.Second},
		"virt-controller was started again": {with(observed(move("PreparingTarget"), running(given), launcher(), target(runs)), func(o *migration.Observed) {}), "accept p2", 59 * time.Second},
		"it was accepted":                   {with(observed(move("PreparingTarget"), running(given), launcher(), target(runs)), func(o *migration.Observed) { o.Calls.Accept = asked(0) }), "start p2", 59 * time.Second},
		"it was not accepted":               {with(observed(move("PreparingTarget"), running(given), launcher(), target(runs)), func(o *migration.Observed) { o.Calls.Accept = refused(time.Second, "Unavailable") }), "", time.Second},
		"it is accepted again": {with(observed(move("PreparingTarget"), running(given), launcher(), target(runs)), func(o *migration.Observed) { o.Calls.Accept = refused(2*time.Second, "Unavailable") }),
			"accept p2", 59 * time.Second},
		"it was begun": {with(observed(move("PreparingTarget"), running(given), launcher(), target(runs)), func(o *migration.Observed) {
			o.Calls.Accept, o.Calls.Start = asked(2*time.Second), asked(time.Second)
		}), "", 8 * time.Second},
		"memory is sent":       {with(observed(move("Scheduling"), running(begun), launcher(), target(runs)), func(o *migration.Observed) { o.Calls.Accept.Now = true }), "Running", 0},
		"memory is sent still": {with(observed(move("Running"), running(begun), launcher(), target(runs)), func(o *migration.Observed) { o.Calls.Accept, o.Calls.Start = asked(time.Second), asked(time.Second) }), "", 9 * time.Second},
		"the calls are made again": {with(observed(move("Running"), running(begun), launcher(), target(runs)), func(o *migration.Observed) {
			o.Calls.Accept, o.Calls.Start = asked(time.Second), asked(10*time.Second)
		}), "start p2", 0},
		"the guest has moved":            {observed(move("Running"), running(moved), launcher(), target(runs)), "Succeeded, SuccessfulMigration, release", 0},
		"it has moved and is deleted":    {observed(move("Running", deleted), running(moved), launcher(), target(runs)), "Succeeded, SuccessfulMigration, release", 0},
		"it was through in a moment":     {observed(move("Scheduling"), running(moved), launcher(), target(runs)), "Succeeded, SuccessfulMigration, release", 0},
		"the handler says that it stays": {observed(move("Running"), running(stays), launcher(), target(runs)), "delete p2, " + failed, 0},

		// It is to end.
		"it is deleted when it moves": {observed(move("Running", deleted), running(begun), launcher(), target(runs)), "Running, vmi m1 abort, vmi:SuccessfulAbortMigration, abort", 0},
		"it is deleted before memory is sent": {observed(move("Scheduling", deleted), running(given), launcher(), target(runs)),
			"Scheduling, vmi m1 abort, vmi:SuccessfulAbortMigration, abort", 0},
		"the abort is being asked for": {with(observed(move("Running", deleted), running(begun, aborting), launcher(), target(runs)), func(o *migration.Observed) {
			o.Migration.Status.Conditions, o.Calls.Abort = abortRequested, migration.Asked{Now: true, Since: now}
		}), "", 0},
		"the handler aborts": {with(observed(move("Running", deleted), running(begun, aborting), launcher(), target(runs)), func(o *migration.Observed) {
			o.Migration.Status.Conditions, o.Calls.Abort = abortRequested, asked(time.Second)
		}), "", 5 * time.Second},
		"the handler aborts what has not begun and reports nothing": {with(observed(move("PreparingTarget", deleted), running(given, aborting), launcher(), target(runs)), func(o *migration.Observed) {
			o.Migration.Status.Conditions, o.Calls.Abort = abortRequested, asked(5*time.Second)
		}), "vmi m1 abort failed, vmi:FailedMigration, delete p2, " + failed, 0},
		"the handler knows of no migration": {with(observed(move("PreparingTarget", deleted), running(given, aborting), launcher(), target(runs)), func(o *migration.Observed) {
			o.Migration.Status.Conditions, o.Calls.Abort = abortRequested, refused(5*time.Second, "NotFound")
		}), "vmi m1 abort failed, vmi:FailedMigration, delete p2, " + failed, 0},
		"the handler was started again and knows of none": {with(observed(move("Running", deleted), running(begun, aborting), launcher(), target(runs)), func(o *migration.Observed) {
			o.Migration.Status.Conditions, o.Calls.Abort, o.Calls.Accept = abortRequested, refused(5*time.Second, "NotFound"), asked(time.Second)
		}), "start p2", 5 * time.Second},
		"everything is at the target already": {with(observed(move("Running", deleted), running(begun, aborting), launcher(), target(runs)), func(o *migration.Observed) {
			o.Migration.Status.Conditions, o.Calls.Abort, o.Calls.Accept = abortRequested, refused(time.Second, "Conflict"), asked(time.Second)
		}), "start p2", time.Second},
		"nothing was sent for a minute":              {observed(move("PreparingTarget", waits), running(given), launcher(), target(runs)), "abort", 0},
		"nothing was sent, and the abort has failed": {with(observed(move("PreparingTarget", waits), running(given), launcher(), target(runs)), func(o *migration.Observed) { o.Calls.Abort = refused(time.Second, "Unavailable") }), "accept p2", time.Second},
		"nothing was sent, and the handler aborts":   {with(observed(move("PreparingTarget", waits), running(given), launcher(), target(runs)), func(o *migration.Observed) { o.Calls.Abort = asked(6 * time.Second) }), "vmi m1 failed, vmi:FailedMigration, delete p2, " + failed, 0},
		"the target is gone":                         {observed(move("Running"), running(begun), launcher()), "abort", 0},
		"the target is gone, and its node's handler is to say what is left of it": {with(observed(move("Running"), running(begun), launcher()), func(o *migration.Observed) {
			o.Calls.Abort = refused(time.Second, "Unavailable")
		}), "accept p2", time.Second},
		"the target is gone, and may run": {with(observed(move("Running"), running(begun), launcher()), func(o *migration.Observed) {
			o.Calls.Abort, o.Calls.Accept = refused(time.Second, "Unavailable"), asked(time.Second)
		}), "start p2", time.Second},
		"the target is gone, and nothing of it is left": {with(observed(move("Running"), running(begun), launcher()), func(o *migration.Observed) {
			o.Calls.Abort, o.Calls.Accept = refused(time.Second, "Unavailable"), refused(time.Second, "NotMoved")
		}), "over p2", time.Second},
		"the target is gone with its node": {with(observed(move("Running"), running(begun), launcher()), func(o *migration.Observed) {
			o.TargetFenced, o.Calls.Abort = true, refused(time.Second, "Unavailable")
		}), "over p2", time.Second},
		"the target has ended":                        {observed(move("Running"), running(begun), launcher(), target(ends(137))), "abort, over p2", 2 * time.Second},
		"the target has ended before memory was sent": {observed(move("PreparingTarget"), running(given), launcher(), target(ends(137))), "abort", 0},
		"the handler is asked to go on": {with(observed(move("Running"), running(begun), launcher(), target(ends(137))), func(o *migration.Observed) {
			o.Calls.Abort.Now, o.Calls.Over.Now = true, true
		}), "", 0},
		"the handler does not answer": {with(observed(move("Running"), running(begun), launcher(), target(ends(137))), func(o *migration.Observed) {
			o.Calls.Abort.Now, o.Calls.Over = true, refused(time.Hour, "Unavailable")
		}), "over p2", 2 * time.Second},
		"the handler goes on and reports nothing": {with(observed(move("Running"), running(begun), launcher(), target(ends(137))), func(o *migration.Observed) {
			o.Calls.Abort, o.Calls.Over = refused(time.Second, "Conflict"), asked(5*time.Second)
		}), "vmi m1 failed, vmi:FailedMigration, " + failed, 0},
		"the target's node is gone": {with(observed(move("Running"), running(begun), launcher(), target(runs)), func(o *migration.Observed) {
			o.TargetFenced, o.Calls.Abort, o.Calls.Over = true, refused(time.Second, "Conflict"), asked(5*time.Second)
		}), "vmi m1 failed, vmi:FailedMigration, delete p2, " + failed, 0},
		"the guest has powered off at the target": {with(observed(move("Running"), running(begun), launcher(), target(ends(0))), func(o *migration.Observed) { o.Calls.Abort = refused(time.Second, "Conflict") }),
			"", 4 * time.Second},
		"the guest has powered off at the target, by a clock that is ahead": {observed(move("Running"), running(begun), launcher(), target(ends(0), endedAgo(-time.Hour))), "", 5 * time.Second},
		"the guest has powered off at the target, and its handler does not report it": {observed(move("Running"), running(begun), launcher(ends(0)), target(ends(0), endedAgo(5*time.Second))),
			"vmi m1 on node2", 0},
		"the guest has powered off at the target, and neither handler has reported anything": {with(observed(move("PreparingTarget"), running(given), launcher(), target(ends(0), endedAgo(5*time.Second))), func(o *migration.Observed) {
			o.Calls.Abort = refused(5*time.Second, "NotFound")
		}), "vmi m1 on node2", 0},
		"the VMI has failed":       {observed(move("Running"), running(begun, func(v *vmi.VirtualMachineInstance) { v.Status.Phase = vmi.PhaseFailed }), launcher(ends(1)), target(runs)), "vmi m1 failed, vmi:FailedMigration, delete p2, " + failed, 0},
		"the VMI has failed there": {observed(move("Running"), running(begun, func(v *vmi.VirtualMachineInstance) { v.Status.Phase, v.Status.NodeName = vmi.PhaseFailed, "node2" }), launcher(ends(0)), target(runs)), "vmi m1 failed, vmi:FailedMigration, " + failed, 0},

		// It has ended.
		"it has succeeded": {observed(move("Succeeded"), running(moved), launcher(ends(0)), target(runs)), "release", 0},
		"it has failed":    {observed(move("Failed"), running(stays), launcher(), target(runs)), "delete p2, release", 0},
		"it has moved, and its guest has ended since": {observed(move("Running"), running(moved, func(v *vmi.VirtualMachineInstance) { v.Status.Phase = vmi.PhaseFailed }), launcher(ends(0)), target(ends(1))), "Succeeded, SuccessfulMigration, release", 0},
		"it has failed and is released":               {observed(move("Failed", func(m *vmi.VirtualMachineInstanceMigration) { m.Finalizers = nil }), running(stays), launcher()), "", 0},
		"the pod that it left runs on":                {observed(move("Succeeded", copied), running(moved), launcher(), target(runs)), "release", 29 * time.Second},
		"the pod that it left runs on for 30 s": {observed(move("Succeeded", copied, func(m *vmi.VirtualMachineInstanceMigration) {
			m.Status.PhaseTransitionTimestamps[0].PhaseTransitionTimestamp = ago(30 * time.Second)
		}), running(moved), launcher(), target(runs)), "delete p1, release", 0},
		"its VMI is gone":         {observed(move("Succeeded"), nil), "release, delete itself", 0},
		"five newer have ended":   {with(observed(move("Succeeded", copied), running(moved), launcher(ends(0)), target(runs)), func(o *migration.Observed) { o.Others = newer(5) }), "release, delete p1, delete itself", 0},
		"four newer have ended":   {with(observed(move("Succeeded", copied), running(moved), launcher(ends(0)), target(runs)), func(o *migration.Observed) { o.Others = newer(4) }), "release", 0},
		"its dead pod goes along": {with(observed(move("Failed"), running(stays), launcher(), target(ends(1))), func(o *migration.Observed) { o.Others = newer(5) }), "release, delete p2, delete itself", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := tt.o.Migration.DeepCopy()
			p := migration.Decide(tt.o)
			require.Equal(t, tt.want, brief(p), "%v", p)
			require.Equal(t, tt.recheck, p.Recheck)
			require.Equal(t, before, tt.o.Migration, "what was observed is not changed")
		})
	}
}

func stuck(v *vmi.VirtualMachineInstance) {
	v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionLiveMigratable, Status: corev1.ConditionFalse, Reason: "DisksNotLiveMigratable", Message: "m"}, ago(0))
}

func aborting(v *vmi.VirtualMachineInstance) { v.Status.MigrationState.AbortRequested = true }

var abortRequested = []vmi.Condition{{Type: "migrationAbortRequested", Status: corev1.ConditionTrue, LastTransitionTime: ago(0),
	Reason: "Deleted", Message: "the migration was deleted before it had ended"}}

func copied(m *vmi.VirtualMachineInstanceMigration) {
	m.Status.MigrationState = running(moved).Status.MigrationState
}

// newer are so many later migrations that have failed.
func newer(n int) []*vmi.VirtualMachineInstanceMigration {
	var out []*vmi.VirtualMachineInstanceMigration
	for i := range n {
		out = append(out, move("Failed", named(fmt.Sprint("n", i), time.Duration(i)*time.Second)))
	}
	return out
}

// statusOf is the status that the plan writes.
func statusOf(t *testing.T, p scheduler.Plan) vmi.VirtualMachineInstanceMigrationStatus {
	t.Helper()
	for _, a := range p.Actions {
		if w, ok := a.(scheduler.WriteStatus[*vmi.VirtualMachineInstanceMigration]); ok {
			return w.Object.Status
		}
	}
	require.Fail(t, "the plan writes no status", "%v", p)
	return vmi.VirtualMachineInstanceMigrationStatus{}
}

func TestAWriteHasTheTimesOfAllPhasesThatItPasses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		plan scheduler.Plan
		want []vmi.MigrationPhase
	}{
		"it begins at once": {func() scheduler.Plan {
			o := observed(move(""), running(), launcher())
			o.Turn = true
			return migration.Decide(o)
		}(),
			[]vmi.MigrationPhase{"Pending", "Scheduling"}},
		"memory is sent at once": {migration.Decide(observed(move("Scheduling"), running(begun), launcher(), target(runs))),
			[]vmi.MigrationPhase{"Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running"}},
		"it has moved": {migration.Decide(observed(move("Scheduling"), running(moved), launcher(), target(runs))),
			[]vmi.MigrationPhase{"Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running", "Succeeded"}},
		"it fails": {migration.Decide(observed(move("Scheduling"), running(stays), launcher(), target(runs))), []vmi.MigrationPhase{"Scheduling", "Failed"}},
	} {
		var got []vmi.MigrationPhase
		for _, s := range statusOf(t, tt.plan).PhaseTransitionTimestamps {
			got = append(got, s.Phase)
		}
		require.Equal(t, tt.want, got, name)
	}
}

func TestTheEndHasTheCopyOfTheState(t *testing.T) {
	t.Parallel()
	for _, how := range []vmitest.Option{moved, stays} {
		v := running(how)
		require.Equal(t, v.Status.MigrationState, statusOf(t, migration.Decide(observed(move("Running"), v, launcher(), target(runs)))).MigrationState)
	}
	require.Nil(t, statusOf(t, migration.Decide(observed(move("Pending", deleted), running(), launcher()))).MigrationState, "a state of another is not copied")
}

func TestTheHandOver(t *testing.T) {
	t.Parallel()
	v := running(func(v *vmi.VirtualMachineInstance) {
		v.Status.ActivePods["old"] = "node2"
		v.Status.MigrationState = &vmi.MigrationState{MigrationUID: "m0", Completed: true, Failed: true, FailureReason: "it was so", StartTimestamp: new(ago(time.Hour))}
	})
	o := observed(move("Scheduling"), v, launcher(), target(runs))
	o.Settings = migration.Settings{Configuration: &vmi.MigrationConfiguration{ProgressTimeout: new(int64(3))}, Policy: "fast"}
	p := migration.Decide(o)
	w, ok := p.Actions[0].(scheduler.WriteInstance)
	require.True(t, ok)
	require.Same(t, v, w.From)
	require.Equal(t, "node2", w.To.Labels[vmi.MigrationTargetNodeLabel])
	require.Equal(t, map[types.UID]string{"p1": "node1", "p2": "node2"}, w.To.Status.ActivePods, "a pod that an earlier migration has left is none any more")
	require.Equal(t, &vmi.MigrationState{
		MigrationUID: "m1", SourceNode: "node1", SourcePod: launcher().Name, TargetNode: "node2", TargetPod: target().Name,
		MigrationConfiguration: &vmi.MigrationConfiguration{ProgressTimeout: new(int64(3))}, MigrationPolicyName: new("fast"),
	}, w.To.Status.MigrationState, "a new one")
	require.Equal(t, "node1", w.To.Status.NodeName)
}

func TestAFailureOfItsOwnSaysWhy(t *testing.T) {
	t.Parallel()
	late := func(m *vmi.VirtualMachineInstanceMigration) {
		m.Status.PhaseTransitionTimestamps[0].PhaseTransitionTimestamp = ago(time.Minute)
	}
	for name, tt := range map[string]struct {
		m    *vmi.VirtualMachineInstanceMigration
		pod  *corev1.Pod
		want vmi.MigrationState
	}{
		"a target that has ended":  {move("PreparingTarget"), target(ends(1)), vmi.MigrationState{FailureReason: "Target pod is down"}},
		"a migration that is late": {move("PreparingTarget", late), target(runs), vmi.MigrationState{FailureReason: "the migration did not begin within 1m0s after the hand-over: no such image"}},
		"one that was aborted":     {move("PreparingTarget", deleted), target(runs), vmi.MigrationState{FailureReason: "Live migration has been aborted", AbortRequested: true, AbortStatus: "Succeeded"}},
	} {
		o := observed(tt.m, running(given), launcher(), tt.pod)
		o.Calls.Abort = migration.Asked{Since: now.Add(-5 * time.Second), At: now.Add(-5 * time.Second)}
		o.Calls.Accept.Refusal = &vmi.Finding{Message: "no such image"}
		s := statusOf(t, migration.Decide(o)).MigrationState
		tt.want.Failed, tt.want.Completed = true, true
		tt.want.StartTimestamp, tt.want.EndTimestamp = s.StartTimestamp, s.EndTimestamp
		g := running(given).Status.MigrationState
		tt.want.MigrationUID, tt.want.SourceNode, tt.want.SourcePod, tt.want.TargetNode, tt.want.TargetPod = g.MigrationUID, g.SourceNode, g.SourcePod, g.TargetNode, g.TargetPod
		require.Equal(t, &tt.want, s, name)
		require.NotNil(t, s.StartTimestamp, name)
		require.NotNil(t, s.EndTimestamp, name)
	}
}

func TestMigrationsOfPodvisorWaitAfterFailedOnes(t *testing.T) {
	t.Parallel()
	failed := func(name string, made, ended time.Duration) *vmi.VirtualMachineInstanceMigration {
		return move("Failed", named(name, made), func(m *vmi.VirtualMachineInstanceMigration) {
			m.Status.PhaseTransitionTimestamps[0].PhaseTransitionTimestamp = ago(ended)
		})
	}
	type all = []*vmi.VirtualMachineInstanceMigration
	for name, tt := range map[string]struct {
		m      *vmi.VirtualMachineInstanceMigration
		others all
		want   time.Duration // 30 s: it does not wait for this
	}{
		"one has failed":          {move("", evacuates), all{failed("a", time.Hour, time.Second)}, 19 * time.Second},
		"it has failed long ago":  {move("", evacuates), all{failed("a", time.Hour, 20*time.Second)}, 0},
		"three have failed":       {move("", evacuates), all{failed("a", 3*time.Hour, time.Hour), failed("b", 2*time.Hour, time.Hour), failed("c", time.Hour, 70*time.Second)}, 10 * time.Second},
		"one has succeeded since": {move("", evacuates), all{failed("a", 3*time.Hour, time.Second), move("Succeeded", named("b", time.Hour))}, 0},
		"a failed one is deleted": {move("", evacuates), all{move("Failed", named("a", time.Hour), deleted)}, 0},
		"a user makes it":         {move(""), all{failed("a", time.Hour, time.Second)}, 0},
		"a test does not wait": {move("", evacuates, func(m *vmi.VirtualMachineInstanceMigration) {
			m.Annotations["kubevirt.io/func-test-ignore-migration-backoff"] = ""
		}), all{failed("a", time.Hour, time.Second)}, 0},
		"a clock of later": {move("", evacuates), all{failed("a", time.Hour, -time.Hour)}, 20 * time.Second},
		"an update waits too": {move("", func(m *vmi.VirtualMachineInstanceMigration) {
			m.Annotations = map[string]string{"kubevirt.io/workloadUpdateMigration": ""}
		}), all{failed("a", time.Hour, time.Second)}, 19 * time.Second},
	} {
		o := observed(tt.m, running(), launcher())
		o.Turn, o.Others = true, tt.others
		p := migration.Decide(o)
		require.Equal(t, tt.want == 0, migration.Eligible(o), name)
		if tt.want == 0 {
			require.Equal(t, "create, Scheduling, SuccessfulCreate", brief(p), name)
			continue
		}
		require.Equal(t, "Pending, vmi:MigrationBackoff", brief(p), name)
		require.Equal(t, tt.want, p.Recheck, name)
	}
}

func TestTheSourceIsSentTheSettingsOfTheHandOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*vmi.MigrationConfiguration{
		"none": nil,
		"some": {BandwidthPerMigration: new(resource.MustParse("64Mi")), ProgressTimeout: new(int64(8))},
	} {
		o := observed(move("PreparingTarget"), running(given), launcher(), target(runs))
		o.VMI.Status.MigrationState.MigrationConfiguration = c
		o.Calls.Accept = migration.Asked{Since: now, At: now}
		o.Settings.Configuration = &vmi.MigrationConfiguration{AllowPostCopy: new(true)} // of the cluster now
		want := protocol.MigrationSettingsOf(c)
		require.Equal(t, []scheduler.Action{scheduler.StartMigration{Instance: o.VMI, Pod: "p2", Settings: want}}, migration.Decide(o).Actions, name)
	}
}

func TestTheQueueIsFair(t *testing.T) {
	t.Parallel()
	place := func(uid types.UID, node string, priority int, before time.Duration) migration.Place {
		return migration.Place{UID: uid, Node: node, Priority: priority, Created: now.Add(-before)}
	}
	begun := func(p migration.Place) migration.Place { p.Begun = true; return p }
	refused := func(p migration.Place) migration.Place { p.Refused = true; return p }
	for name, tt := range map[string]struct {
		all    []migration.Place
		limits migration.Limits
		want   []types.UID
	}{
		"the older first":                     {[]migration.Place{place("b", "n1", 0, 1), place("a", "n1", 0, 2)}, migration.Limits{}, []types.UID{"a", "b"}},
		"then the lower UID":                  {[]migration.Place{place("b", "n1", 0, 1), place("a", "n1", 0, 1)}, migration.Limits{}, []types.UID{"a", "b"}},
		"the higher priority before":          {[]migration.Place{place("a", "n1", 0, 2), place("b", "n1", 100, 1), place("c", "n2", 50, 1)}, migration.Limits{}, []types.UID{"b", "c", "a"}},
		"a node's limit":                      {[]migration.Place{place("a", "n1", 0, 4), place("b", "n1", 0, 3), place("c", "n1", 0, 2), place("d", "n2", 0, 1)}, migration.Limits{}, []types.UID{"a", "b", "d"}},
		"those that have begun count":         {[]migration.Place{begun(place("a", "n1", 0, 1)), begun(place("b", "n1", 0, 1)), place("c", "n1", 100, 2), place("d", "n2", 0, 1)}, migration.Limits{}, []types.UID{"d"}},
		"the cluster's limit":                 {[]migration.Place{begun(place("a", "n1", 0, 1)), place("b", "n2", 0, 2), place("c", "n3", 0, 1)}, migration.Limits{Cluster: 2}, []types.UID{"b"}},
		"no place":                            {[]migration.Place{begun(place("a", "n1", 0, 1)), place("b", "n2", 0, 2)}, migration.Limits{Cluster: 1}, nil},
		"a limit of one":                      {[]migration.Place{place("a", "n1", 0, 1), place("b", "n1", 20, 2)}, migration.Limits{Node: 1}, []types.UID{"b"}},
		"one that was refused keeps no place": {[]migration.Place{refused(place("a", "n1", 100, 2)), place("b", "n2", 0, 1)}, migration.Limits{Cluster: 1}, []types.UID{"b"}},
		"one that was refused has its turn":   {[]migration.Place{refused(place("a", "n1", 100, 2))}, migration.Limits{Cluster: 1}, []types.UID{"a"}},
		"a limit of none":                     {[]migration.Place{place("a", "n1", 0, 1)}, migration.Limits{Cluster: -1}, nil},
		"a node's limit of none":              {[]migration.Place{place("a", "n1", 0, 1)}, migration.Limits{Node: -1}, nil},
		"more have begun than the limit is":   {[]migration.Place{begun(place("a", "n1", 0, 1)), begun(place("b", "n2", 0, 2)), place("c", "n3", 0, 2)}, migration.Limits{Cluster: 1}, nil},
	} {
		require.Equal(t, tt.want, migration.MayBegin(tt.all, tt.limits), name)
	}
	critical := vmi.MigrationSystemCritical
	m := move("Scheduling", func(m *vmi.VirtualMachineInstanceMigration) { m.Spec.Priority = &critical })
	require.Equal(t, migration.Place{UID: "m1", Node: "node1", Begun: true, Priority: 100, Created: m.CreationTimestamp.Time}, migration.PlaceOf(m, running()))
}

func TestWhetherAnotherNodeHasTheProcessorIsFoundOutOnce(t *testing.T) {
	t.Parallel()
	selects := func(keys ...string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{"zone": "a"}
			for _, k := range keys {
				p.Spec.NodeSelector[k] = "true"
			}
		}
	}
	const model, feature = "cpu-model-migration.node.kubevirt.io/Skylake", "cpu-feature.node.kubevirt.io/aes"
	for name, tt := range map[string]struct {
		is   migration.Observed
		want map[string]string
	}{
		"no node fits":                 {observed(move("Scheduling"), running(), launcher(), target(homeless, selects(model, feature))), map[string]string{model: "true", feature: "true"}},
		"it has another model":         {observed(move("Scheduling"), running(), launcher(), target(homeless, selects("cpu-model.node.kubevirt.io/Skylake", feature))), nil},
		"the scheduler has not looked": {observed(move("Scheduling"), running(), launcher(), target(selects(model))), nil},
		"there is no target":           {observed(move("Pending"), running(), launcher()), nil},
		"it has ended":                 {observed(move("Failed"), running(), launcher(), target(homeless, selects(model))), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, tt.is.ModelLabels())
			tt.is.Warned = true
			require.Nil(t, tt.is.ModelLabels(), "it was said")
		})
	}
}
