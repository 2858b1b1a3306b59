package migration_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/migration"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
)

func keeps(v *vmi.VirtualMachineInstance) {
	v.Spec.Domain.Devices.TPM = &vmi.TPM{Persistent: new(true)}
}

// withState is what is observed of a VMI with state in a claim, whose source has it.
func withState(o migration.Observed) migration.Observed {
	keeps(o.VMI)
	held := pod.StateClaim(o.VMI, config)
	o.Config.Facts.State = held
	into := config
	into.Role = pod.Target(o.Migration)
	made := pod.StateClaim(o.VMI, into)
	made.UID = "claim"
	for i, p := range o.Pods {
		name := held.Name
		if p == o.Target {
			name, o.Claim = made.Name, made
		}
		o.Pods[i].Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "vm-state", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
	return o
}

func TestATargetHasAClaimOfItsOwnForTheState(t *testing.T) {
	t.Parallel()
	o := withState(observed(move("Pending"), running(), launcher()))
	o.Turn = true
	p := migration.Decide(o)
	require.Equal(t, "scheduler.CreateClaim, create, Scheduling, SuccessfulCreate", brief(p))
	claim := p.Actions[0].(scheduler.CreateClaim).Claim
	require.Equal(t, map[string]string{"kubevirt.io/migrationName": "move"}, claim.Labels)
	require.Equal(t, map[string]string{"podvisor.io/migration": "m1"}, claim.Annotations)
	require.Equal(t, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, claim.Spec.AccessModes)
	target := p.Actions[1].(scheduler.CreatePod).Pod
	require.Equal(t, claim.Name, launched.StateClaim(target))
	require.NotContains(t, target.Spec.Containers[0].Args, "--require-state", "its state comes")

	// The claim is there already if the pod was not accepted at first.
	again := o
	again.Claim = claim.DeepCopy()
	require.Equal(t, "create, Scheduling, SuccessfulCreate", brief(migration.Decide(again)))
	again.Claim.DeletionTimestamp = new(ago(0))
	p = migration.Decide(again)
	require.Empty(t, p.Actions)
	require.Equal(t, 2*time.Second, p.Recheck)
	again.Claim = claim.DeepCopy()
	again.Claim.Annotations = nil
	require.Contains(t, brief(migration.Decide(again)), "Failed")

	// The claim that the guest has is not the one that a start would use: it becomes that first.
	o.Config.Facts.State = claim
	p = migration.Decide(o)
	require.Empty(t, p.Actions)
	require.Equal(t, 2*time.Second, p.Recheck)
}

func TestTheHandOverNamesTheClaimsOfTheState(t *testing.T) {
	t.Parallel()
	o := withState(observed(move("Scheduling"), running(), launcher(), target(runs)))
	for _, a := range migration.Decide(o).Actions {
		if w, ok := a.(scheduler.WriteInstance); ok {
			require.Equal(t, "persistent-state-for-testvmi", w.To.Status.MigrationState.SourcePersistentStatePVCName)
			require.Equal(t, o.Claim.Name, w.To.Status.MigrationState.TargetPersistentStatePVCName)
			return
		}
	}
	require.Fail(t, "there is no hand-over")
}

func TestAMigrationThatWasNotHandedOverLeavesNoClaim(t *testing.T) {
	t.Parallel()
	const failed = "Failed, FailedMigration, release"
	labelled := func(o migration.Observed) migration.Observed {
		o.Claim.Labels = map[string]string{vmi.StateLabel: "testvmi"}
		return o
	}
	for name, tt := range map[string]struct {
		o    migration.Observed
		want string
	}{
		"it is deleted":             {withState(observed(move("Scheduling", deleted), running(), launcher(), target(runs))), "delete p2, scheduler.DeleteClaim, " + failed},
		"it has failed":             {withState(observed(move("Failed"), running(), launcher(), target(runs))), "delete p2, scheduler.DeleteClaim, release"},
		"the VMI was handed over":   {withState(observed(move("Running"), running(stays), launcher(), target(runs))), "delete p2, " + failed},
		"it was, for this one once": {withState(observed(move("Failed", copied), running(), launcher(), target(runs))), "delete p2, release"},
		"the claim has the state":   {labelled(withState(observed(move("Failed"), running(), launcher(), target(runs)))), "delete p2, release"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, brief(migration.Decide(tt.o)))
		})
	}
}

func TestNoStartUsesTheClaimOfATargetThatIsOver(t *testing.T) {
	t.Parallel()
	o := withState(observed(move("Running"), running(begun), launcher(), target(ends(137))))
	require.Equal(t, "abort, hold p2", brief(migration.Decide(o)), "the source may have to say that the guest ran there")
	o.Calls.Abort = refused(0, "Unavailable")
	o.Calls.Hold.Now = true
	require.Empty(t, brief(migration.Decide(o)))
	o.Calls.Hold = refused(time.Second, "Unavailable")
	require.Empty(t, brief(migration.Decide(o)))
	o.Calls.Hold = asked(0)
	p := migration.Decide(o)
	require.Equal(t, "scheduler.DeleteClaim", brief(p), "the claim before: the source may run on then")
	require.Positive(t, p.Recheck)
	o.Claim.DeletionTimestamp = new(ago(0))
	require.Equal(t, "over p2", brief(migration.Decide(o)))
	o.Claim = nil
	require.Equal(t, "over p2", brief(migration.Decide(o)))
}

func TestAGuestThatRanAtATargetThatIsOverHasMoved(t *testing.T) {
	t.Parallel()
	for name, say := range map[string]func(*migration.Observed){
		"its source says so":      func(o *migration.Observed) { o.Calls.Hold = refused(0, "MovedAway") },
		"it says so later":        func(o *migration.Observed) { o.Calls.Hold, o.Calls.Over = asked(0), refused(0, "MovedAway") },
		"its source has ended so": func(o *migration.Observed) { movesAway(o.Pods[0]) },
		"that it was sent was not written": func(o *migration.Observed) {
			movesAway(o.Pods[0])
			o.VMI.Status.MigrationState.StartTimestamp = nil
			o.Calls.Abort = refused(time.Minute, vmi.RefusedNotFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := withState(observed(move("Running"), running(begun), launcher(), target(ends(137))))
			say(&o)
			p := migration.Decide(o)
			require.Len(t, p.Actions, 1, "no claim is deleted: it has the state")
			w := p.Actions[0].(scheduler.WriteInstance)
			require.Equal(t, o.VMI.Status.MigrationState.TargetNode, w.To.Status.NodeName)
			require.True(t, w.To.Status.MigrationState.Completed)
			require.False(t, w.To.Status.MigrationState.Failed)
			require.NotNil(t, w.To.Status.MigrationState.StartTimestamp)
			o.VMI = w.To
			require.Equal(t, "Succeeded, SuccessfulMigration, release", brief(migration.Decide(o)))
		})
	}
}

// movesAway ends a pod whose guest runs in another one.
func movesAway(p *corev1.Pod) {
	p.Status.Phase = corev1.PodSucceeded
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: vmi.ComputeContainer, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{Message: "MovedAway: the guest runs in another pod"},
	}}}
}
