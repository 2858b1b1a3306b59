package instance_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// arrived makes the VMI one that has moved from its node to another.
func arrived(v *vmi.VirtualMachineInstance) {
	moves(v)
	readyNow(v)
	v.Status.NodeName = "node2"
	v.Status.MigrationState.Completed = true
	v.Labels = map[string]string{vmi.NodeNameLabel: node, vmi.MigrationTargetNodeLabel: "node2"}
}

// sends makes the VMI one whose memory is sent.
func sends(v *vmi.VirtualMachineInstance) {
	moves(v)
	v.Status.MigrationState.StartTimestamp = new(metav1.NewTime(now))
}

// unready is a pod that is ready no more, by its kubelet.
func unready(p *corev1.Pod) {
	shutGate(p)
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == corev1.PodReady {
			p.Status.Conditions[i].Status = corev1.ConditionFalse
		}
	}
}

// asks gives the pod a startup probe that has not succeeded.
func asks(p *corev1.Pod) {
	p.Spec.Containers = []corev1.Container{{Name: vmi.ComputeContainer, StartupProbe: &corev1.Probe{}}}
}

// alsoReady gives it a readiness probe too.
func alsoReady(p *corev1.Pod) {
	asks(p)
	p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{}
}

// wentOn makes the VMI one that has moved on from where it had moved to.
func wentOn(v *vmi.VirtualMachineInstance) {
	arrived(v)
	v.Status.NodeName = node
	v.Status.MigrationState.SourcePod = "virt-launcher-testvmi-vvvvv"
}

// asked is the pod once it has.
func asked(p *corev1.Pod) {
	asks(p)
	p.Status.ContainerStatuses[0].Started = new(true)
}

// gatesIn are the gates that the plan changes, by their pods.
func gatesIn(p scheduler.Plan) map[types.UID]corev1.ConditionStatus {
	out := map[types.UID]corev1.ConditionStatus{}
	for _, a := range p.Actions {
		if g, ok := a.(scheduler.SetPodCondition); ok {
			out[g.UID] = g.Condition.Status
		}
	}
	return out
}

func TestTheGateOfThePodThatAGuestHasLeftIsClosedFirst(t *testing.T) {
	t.Parallel()
	type gates = map[types.UID]corev1.ConditionStatus
	for name, tt := range map[string]struct {
		vmi            *vmi.VirtualMachineInstance
		source, target *corev1.Pod
		want           gates
	}{
		"before the guest moves":                    {stored(vmi.PhaseRunning, moves, readyNow), launcher(running), secondPod(running, ungranted), gates{}},
		"the guest has moved":                       {stored(vmi.PhaseRunning, arrived), launcher(running), secondPod(running, ungranted), gates{podUID: "False"}},
		"the kubelet has not seen the closed gate":  {stored(vmi.PhaseRunning, arrived), launcher(running, shutGate, saysReady), secondPod(running, ungranted), gates{}},
		"the pod is not ready any more":             {stored(vmi.PhaseRunning, arrived), launcher(running, unready), secondPod(running, ungranted), gates{"target-uid": "True"}},
		"the pod has ended":                         {stored(vmi.PhaseRunning, arrived), launcher(exited(0, time.Second, "MovedAway: m")), secondPod(running, ungranted), gates{"target-uid": "True"}},
		"the pod is gone":                           {stored(vmi.PhaseRunning, arrived), nil, secondPod(running, ungranted), gates{"target-uid": "True"}},
		"the pod is being deleted":                  {stored(vmi.PhaseRunning, arrived), launcher(running, leaving), secondPod(running, ungranted), gates{"target-uid": "True"}},
		"the guest is paused where it has moved to": {stored(vmi.PhaseRunning, arrived, paused), launcher(running, unready), secondPod(running, ungranted), gates{}},
		"a pod that is asked nothing yet":           {stored(vmi.PhaseRunning, moves, readyNow), launcher(running), secondPod(running, ungranted, asks), gates{}},
		"nor whether it is ready":                   {stored(vmi.PhaseRunning, moves, readyNow), launcher(running), secondPod(running, ungranted, alsoReady), gates{"target-uid": "True"}},
		"nor shall it be, of a paused guest":        {stored(vmi.PhaseRunning, moves, readyNow, paused), launcher(running, shutGate), secondPod(running, ungranted, alsoReady), gates{}},
		"the guest is paused before it moves":       {stored(vmi.PhaseRunning, moves, readyNow, paused), launcher(running, shutGate), secondPod(running, alsoReady), gates{"target-uid": "False"}},
		"it is open":                                {stored(vmi.PhaseRunning, moves, readyNow), launcher(running), secondPod(running, alsoReady), gates{}},
		"it is open, and the guest has moved":       {stored(vmi.PhaseRunning, arrived), launcher(running), secondPod(running, alsoReady), gates{podUID: "False"}},
		"the guest has moved, and is not asked yet": {stored(vmi.PhaseRunning, arrived), launcher(running), secondPod(running, ungranted, asks), gates{podUID: "False", "target-uid": "True"}},
		"its kubelet was started again as it left":  {stored(vmi.PhaseRunning, wentOn), launcher(running), secondPod(running, alsoReady), gates{"target-uid": "False"}},
		"it is asked, and the guest stays":          {stored(vmi.PhaseRunning, moves, readyNow, hasFailed), launcher(running), secondPod(running, asked), gates{"target-uid": "False"}},
		"the migration has failed, and is over":     {stored(vmi.PhaseRunning, moves, readyNow, hasFailed), launcher(running), secondPod(running, ungranted), gates{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, gatesIn(instance.Decide(observe(tt.vmi, tt.source, tt.target))))
		})
	}
}

func saysReady(p *corev1.Pod) {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == corev1.PodReady {
			p.Status.Conditions[i].Status = corev1.ConditionTrue
		}
	}
}

func byDescheduler(v *vmi.VirtualMachineInstance) {
	v.Annotations = map[string]string{vmi.EvictionSourceAnnotation: vmi.EvictionByDescheduler}
}

func hasFailed(v *vmi.VirtualMachineInstance) {
	v.Status.MigrationState.Completed, v.Status.MigrationState.Failed = true, true
}

func TestTheLabelsSayWhereAVMIIsAndWhereItMovesTo(t *testing.T) {
	t.Parallel()
	given := func(v *vmi.VirtualMachineInstance) { v.Labels[vmi.MigrationTargetNodeLabel] = "node2" }
	old := func(v *vmi.VirtualMachineInstance) {
		v.Status.LauncherContainerImageVersion, v.Labels[vmi.OutdatedLauncherLabel] = "example/virt-launcher:0", ""
	}
	movedBut := scheduler.SetLabel{Key: vmi.NodeNameLabel, Value: "node2"}
	moved := scheduler.ChangeLabels{Labels: map[string]string{vmi.NodeNameLabel: "node2"}, Removed: []string{vmi.MigrationTargetNodeLabel}}
	for name, tt := range map[string]struct {
		vmi    *vmi.VirtualMachineInstance
		source []func(*corev1.Pod) // what changes the pod that is ready no more
		target *corev1.Pod
		want   scheduler.Action
	}{
		"it has moved": {stored(vmi.PhaseRunning, arrived), nil, secondPod(running),
			scheduler.ChangeLabels{Labels: map[string]string{vmi.NodeNameLabel: "node2"}, Removed: []string{vmi.MigrationTargetNodeLabel}}},
		"it has moved to the launcher of now": {stored(vmi.PhaseRunning, arrived, old), nil, secondPod(running),
			scheduler.ChangeLabels{Labels: map[string]string{vmi.NodeNameLabel: "node2"}, Removed: []string{vmi.MigrationTargetNodeLabel, vmi.OutdatedLauncherLabel}}},
		"it has moved, as the descheduler asked for": {stored(vmi.PhaseRunning, arrived, byDescheduler), nil, secondPod(running),
			scheduler.ChangeLabels{Labels: map[string]string{vmi.NodeNameLabel: "node2"}, Removed: []string{vmi.MigrationTargetNodeLabel}, Annotations: []string{vmi.EvictionSourceAnnotation}}},
		"it stays, as the descheduler does not want": {stored(vmi.PhaseRunning, moves, readyNow, byDescheduler, hasFailed), nil, nil, nil},
		"it stays in the old launcher":               {stored(vmi.PhaseRunning, moves, readyNow, old, hasFailed), nil, nil, nil},
		"it moves":                                   {stored(vmi.PhaseRunning, moves, readyNow, given), nil, secondPod(running), nil},
		"it is about to be handed over":              {stored(vmi.PhaseRunning, readyNow, given), nil, secondPod(running), nil},
		"the target ended before":                    {stored(vmi.PhaseRunning, readyNow, given), nil, secondPod(exited(1, time.Second, "")), scheduler.RemoveLabel{Key: vmi.MigrationTargetNodeLabel}},
		"it stays, and the target is there":          {stored(vmi.PhaseRunning, moves, readyNow, given, hasFailed), nil, secondPod(running), nil},
		"it has ended while it moved":                {stored(vmi.PhaseFailed, moves, given), nil, secondPod(running), nil},
		"it has ended, and had failed to move":       {stored(vmi.PhaseFailed, moves, given, hasFailed), nil, nil, scheduler.RemoveLabel{Key: vmi.MigrationTargetNodeLabel}},
		"it has ended where it had moved to": {stored(vmi.PhaseFailed, arrived), nil, secondPod(exited(1, time.Second, "")),
			scheduler.ChangeLabels{Labels: map[string]string{vmi.NodeNameLabel: "node2"}, Removed: []string{vmi.MigrationTargetNodeLabel}}},
		"it has ended there, and its pod was removed": {stored(vmi.PhaseFailed, arrived), nil, nil,
			scheduler.ChangeLabels{Labels: map[string]string{vmi.NodeNameLabel: "node2"}, Removed: []string{vmi.MigrationTargetNodeLabel}}},
		"it stays": {stored(vmi.PhaseRunning, moves, readyNow, given, hasFailed), nil, nil, scheduler.RemoveLabel{Key: vmi.MigrationTargetNodeLabel}},
		"it has moved, and the pod of before is ready still": {stored(vmi.PhaseRunning, arrived), []func(*corev1.Pod){saysReady}, secondPod(running), moved},
		"its guest is not asked before that pod is not":      {stored(vmi.PhaseRunning, arrived), []func(*corev1.Pod){saysReady}, secondPod(running, asks), movedBut},
		"its guest may be asked":                             {stored(vmi.PhaseRunning, arrived), nil, secondPod(running, asks), moved},
		"its guest is asked":                                 {stored(vmi.PhaseRunning, arrived), []func(*corev1.Pod){saysReady}, secondPod(running, asked), moved},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []scheduler.Action
			source := launcher(append([]func(*corev1.Pod){running, unready}, tt.source...)...)
			for _, a := range instance.Decide(observe(tt.vmi, source, tt.target)).Actions {
				switch a.(type) {
				case scheduler.SetLabel, scheduler.RemoveLabel, scheduler.ChangeLabels:
					got = append(got, a)
				}
			}
			if tt.want == nil {
				require.Empty(t, got)
				return
			}
			require.Equal(t, []scheduler.Action{tt.want}, got)
		})
	}
}

func TestAPodThatAGuestHasLeftIsAPodOfTheVMIUntilItHasEnded(t *testing.T) {
	t.Parallel()
	both, second := map[types.UID]string{podUID: node, "target-uid": "node2"}, map[types.UID]string{"target-uid": "node2"}
	for name, tt := range map[string]struct {
		vmi            *vmi.VirtualMachineInstance
		source, target *corev1.Pod
		want           map[types.UID]string
	}{
		"it runs":                       {stored(vmi.PhaseRunning, arrived), launcher(running), secondPod(running), both},
		"it has ended":                  {stored(vmi.PhaseRunning, arrived), launcher(exited(0, time.Second, "MovedAway: m")), secondPod(running), second},
		"it is gone":                    {stored(vmi.PhaseRunning, arrived), nil, secondPod(running), second},
		"the guest has not moved yet":   {stored(vmi.PhaseRunning, moves, readyNow), launcher(running), secondPod(exited(1, time.Second, "")), both},
		"the guest stays":               {stored(vmi.PhaseRunning, moves, readyNow, hasFailed), launcher(running), secondPod(exited(1, time.Second, "")), map[types.UID]string{podUID: node}},
		"the guest stays, a target too": {stored(vmi.PhaseRunning, moves, readyNow, hasFailed), launcher(running), secondPod(running), both},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := instance.Decide(observe(tt.vmi, tt.source, tt.target))
			got := tt.vmi.Status.ActivePods
			for _, a := range p.Actions {
				if w, ok := a.(writeStatus); ok {
					got = w.Object.Status.ActivePods
					require.Equal(t, tt.vmi.Status.Phase, w.Object.Status.Phase)
					if len(tt.want) == 1 && tt.want["target-uid"] != "" {
						require.Equal(t, config.Image, w.Object.Status.LauncherContainerImageVersion)
					}
				}
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestAGuestMayStillArriveWhenItsSourceIsGone(t *testing.T) {
	t.Parallel()
	killed := func(before time.Duration) *corev1.Pod { return launcher(exited(137, before, "")) }
	for name, tt := range map[string]struct {
		vmi            *vmi.VirtualMachineInstance
		source, target *corev1.Pod
		phase          vmi.Phase
		recheck        time.Duration
	}{
		"all may be at the target":              {stored(vmi.PhaseRunning, sends), killed(6 * time.Second), secondPod(running), "", 9 * time.Second},
		"it would have arrived":                 {stored(vmi.PhaseRunning, sends), killed(15 * time.Second), secondPod(running), vmi.PhaseFailed, 0},
		"nothing was sent":                      {stored(vmi.PhaseRunning, moves), killed(6 * time.Second), secondPod(running), vmi.PhaseFailed, 0},
		"the target has ended":                  {stored(vmi.PhaseRunning, sends), killed(6 * time.Second), secondPod(exited(1, time.Second, "")), vmi.PhaseFailed, 0},
		"the migration has failed":              {stored(vmi.PhaseRunning, sends, hasFailed), killed(6 * time.Second), secondPod(running), vmi.PhaseFailed, 0},
		"the guest powered itself off":          {stored(vmi.PhaseRunning, sends), launcher(exited(0, 6*time.Second, "")), secondPod(running), vmi.PhaseSucceeded, 0},
		"its source ended after it has arrived": {stored(vmi.PhaseRunning, arrived), killed(time.Hour), secondPod(running), vmi.PhaseRunning, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := instance.Decide(observe(tt.vmi, tt.source, tt.target))
			require.Equal(t, tt.phase, summarize(p).Phase, "%v", p)
			if tt.phase == "" {
				require.Equal(t, tt.recheck, p.Recheck)
			}
		})
	}
}

func TestAVMISaysFromItsHandOverOnWhetherAndHowItMoves(t *testing.T) {
	t.Parallel()
	bridge := bridged(vmi.NetworkSource{Pod: &vmi.PodNetwork{}})
	for name, tt := range map[string]struct {
		change vmitest.Option
		want   corev1.ConditionStatus
	}{
		"one that moves":     {func(*vmi.VirtualMachineInstance) {}, corev1.ConditionTrue},
		"one that cannot be": {bridge, corev1.ConditionFalse},
	} {
		s := statusOf(t, instance.Decide(observe(stored(vmi.PhaseScheduling, tt.change), launcher(running))))
		require.Equal(t, tt.want, s.Condition(vmi.ConditionLiveMigratable).Status, name)
		require.Equal(t, tt.want, s.Condition(vmi.ConditionStorageLiveMigratable).Status, name)
		require.Equal(t, vmi.BlockMigration, s.MigrationMethod, "the container disk is copied")
	}
	claim := vmi.VolumeSource{PersistentVolumeClaim: &vmi.PersistentVolumeClaimVolume{PersistentVolumeClaimVolumeSource: corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}
	cdrom := func(v *vmi.VirtualMachineInstance) {
		v.Spec.Volumes = append(v.Spec.Volumes, vmi.Volume{Name: "iso", VolumeSource: vmi.VolumeSource{ContainerDisk: &vmi.ContainerDisk{Image: "i"}}})
		v.Spec.Domain.Devices.Disks = append(v.Spec.Domain.Devices.Disks, vmi.Disk{Name: "iso", CDRom: &vmi.CDRomTarget{}})
	}
	for name, tt := range map[string]struct {
		vmi  *vmi.VirtualMachineInstance
		want vmi.MigrationMethod
	}{
		"no disk":                   {vmitest.New(), vmi.LiveMigration},
		"a claim of all nodes":      {vmitest.New(holding(claim, corev1.ReadWriteMany)), vmi.LiveMigration},
		"a claim of one node":       {vmitest.New(holding(claim, corev1.ReadWriteOnce)), vmi.BlockMigration},
		"a read-only CD-ROM beside": {vmitest.New(holding(claim, corev1.ReadWriteMany), cdrom), vmi.LiveMigration},
		"a container disk":          {vmitest.New(vmitest.WithContainerDisk("root", "i")), vmi.BlockMigration},
	} {
		require.Equal(t, tt.want, instance.Movable{}.Method(tt.vmi), name)
	}
}

func TestAGuestWithTheAddressOfASecondaryNetworkStays(t *testing.T) {
	t.Parallel()
	for addresses, want := range map[string]corev1.ConditionStatus{"": corev1.ConditionTrue, `, "ips": ["192.168.7.2"]`: corev1.ConditionFalse} {
		v := stored(vmi.PhaseScheduling, vmitest.WithMasquerade("default"), vmitest.WithMultus("blue", "lan"))
		p := launcher(running, func(p *corev1.Pod) {
			p.Annotations["k8s.v1.cni.cncf.io/network-status"] = `[{"name": "default/lan", "interface": "pod16477688c0e"` + addresses + `}]`
		})
		s := statusOf(t, instance.Decide(observe(v, p)))
		c := s.Condition(vmi.ConditionLiveMigratable)
		require.Equal(t, want, c.Status, c.Message)
		if want == corev1.ConditionFalse {
			require.Equal(t, vmi.ReasonInterfaceNotLiveMigratable, c.Reason)
		}
	}
}
