package evacuation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/evacuation"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// marked is a VMI that runs on n1, which it has to leave.
func marked() evacuation.Observed {
	v := vmitest.New(vmitest.WithPhase(vmi.PhaseRunning))
	v.Spec.EvictionStrategy = new(vmi.EvictionLiveMigrate)
	v.Status.NodeName, v.Status.EvacuationNodeName = "n1", "n1"
	v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionLiveMigratable, Status: corev1.ConditionTrue}, metav1.Now())
	return evacuation.Observed{VMI: v, Drain: vmi.DrainTaintKey, Pods: []*corev1.Pod{pod(corev1.PodRunning)}}
}

func pod(p corev1.PodPhase) *corev1.Pod { return &corev1.Pod{Status: corev1.PodStatus{Phase: p}} }

func migration(uid types.UID, age time.Duration, p vmi.MigrationPhase) *vmi.VirtualMachineInstanceMigration {
	m := &vmi.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{UID: uid, CreationTimestamp: metav1.NewTime(time.Unix(1_700_000_000, 0).Add(-age))}}
	m.Spec.VMIName, m.Status.Phase = "testvmi", p
	return m
}

// made is the migration that the plan makes, or nil.
func made(t *testing.T, p scheduler.Plan) *vmi.VirtualMachineInstanceMigration {
	t.Helper()
	if len(p.Actions) == 0 {
		return nil
	}
	require.Len(t, p.Actions, 1)
	return p.Actions[0].(scheduler.CreateMigration).Migration
}

func TestAVMIThatHasToLeaveIsMigrated(t *testing.T) {
	t.Parallel()
	tainted := func(key string, e corev1.TaintEffect) func(*evacuation.Observed) {
		return func(o *evacuation.Observed) {
			o.VMI.Status.EvacuationNodeName, o.Taints = "", []corev1.Taint{{Key: key, Effect: e}}
		}
	}
	strategy := func(s vmi.EvictionStrategy) func(*evacuation.Observed) {
		return func(o *evacuation.Observed) { o.VMI.Spec.EvictionStrategy = &s }
	}
	movable := func(s corev1.ConditionStatus) func(*evacuation.Observed) {
		return func(o *evacuation.Observed) {
			o.VMI.Status.SetCondition(vmi.Condition{Type: vmi.ConditionLiveMigratable, Status: s}, metav1.Now())
		}
	}
	migrations := func(all ...*vmi.VirtualMachineInstanceMigration) func(*evacuation.Observed) {
		return func(o *evacuation.Observed) { o.Migrations = all }
	}
	for name, tt := range map[string]struct {
		change func(*evacuation.Observed)
		leaves bool
	}{
		"one that is marked":                  {func(*evacuation.Observed) {}, true},
		"one that is not":                     {func(o *evacuation.Observed) { o.VMI.Status.EvacuationNodeName = "" }, false},
		"one that was marked on another node": {func(o *evacuation.Observed) { o.VMI.Status.EvacuationNodeName = "n0" }, false},
		"one without a node":                  {func(o *evacuation.Observed) { o.VMI.Status.NodeName, o.VMI.Status.EvacuationNodeName = "", "" }, false},
		"one whose node is drained":           {tainted("kubevirt.io/drain", corev1.TaintEffectNoSchedule), true},
		"one whose node ends its pods":        {tainted("kubevirt.io/drain", corev1.TaintEffectNoExecute), false},
		"one whose node has another taint":    {tainted("node.kubernetes.io/unschedulable", corev1.TaintEffectNoSchedule), false},
		"one that moves if it can":            {strategy(vmi.EvictionLiveMigrateIfPossible), true},
		"one that another controller moves":   {strategy(vmi.EvictionExternal), false},
		"one that does not move":              {strategy(vmi.EvictionNone), false},
		"one of which the cluster says so": {func(o *evacuation.Observed) {
			o.VMI.Spec.EvictionStrategy, o.Profile = nil, defaults.Profile{EvictionStrategy: vmi.EvictionLiveMigrate}
		}, true},
		"one of which nothing says so":           {func(o *evacuation.Observed) { o.VMI.Spec.EvictionStrategy = nil }, false},
		"one that cannot move":                   {movable(corev1.ConditionFalse), false},
		"one of which that is not known":         {func(o *evacuation.Observed) { o.VMI.Status.Conditions = nil }, false},
		"one that has ended":                     {func(o *evacuation.Observed) { o.VMI.Status.Phase = vmi.PhaseFailed }, false},
		"one that does not run yet":              {func(o *evacuation.Observed) { o.VMI.Status.Phase = vmi.PhaseScheduled }, false},
		"one that is deleted":                    {func(o *evacuation.Observed) { o.VMI.DeletionTimestamp = new(metav1.Now()) }, false},
		"one that moves":                         {migrations(migration("a", 0, vmi.MigrationPhaseRunning)), false},
		"one that waits to":                      {migrations(migration("a", 0, vmi.MigrationPhasePending)), false},
		"one whose migration is new":             {migrations(migration("a", 0, vmi.MigrationPhaseUnset)), false},
		"one that has failed to":                 {migrations(migration("a", 0, vmi.MigrationPhaseFailed)), true},
		"one that has moved, as is not seen yet": {migrations(migration("a", 0, vmi.MigrationPhaseSucceeded)), false},
		"one that has moved": {func(o *evacuation.Observed) {
			migrations(migration("a", 0, vmi.MigrationPhaseSucceeded))(o)
			o.VMI.Status.MigrationState = &vmi.MigrationState{MigrationUID: "a", Completed: true}
		}, true},
		"one that is newer than its name's last migration": {func(o *evacuation.Observed) {
			migrations(migration("a", time.Hour, vmi.MigrationPhaseSucceeded))(o)
			o.VMI.CreationTimestamp = metav1.NewTime(time.Unix(1_700_000_000, 0))
		}, true},
		"one whose last target still runs":    {func(o *evacuation.Observed) { o.Pods = append(o.Pods, pod(corev1.PodRunning)) }, false},
		"one whose last target has ended":     {func(o *evacuation.Observed) { o.Pods = append(o.Pods, pod(corev1.PodFailed), pod(corev1.PodSucceeded)) }, true},
		"one that the cluster's taint is for": {func(o *evacuation.Observed) { tainted("a/b", corev1.TaintEffectNoSchedule)(o); o.Drain = "a/b" }, true},
		"one that a former default is not for": {func(o *evacuation.Observed) {
			tainted("kubevirt.io/drain", corev1.TaintEffectNoSchedule)(o)
			o.Drain = "a/b"
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := marked()
			tt.change(&o)
			m := made(t, evacuation.Decide(o))
			require.Equal(t, tt.leaves, m != nil)
			if m == nil {
				return
			}
			require.Regexp(t, "^kubevirt-evacuation-[0-9a-v]{10}$", m.Name)
			require.Equal(t, o.VMI.Namespace, m.Namespace)
			require.Equal(t, map[string]string{"kubevirt.io/evacuationMigration": "n1"}, m.Annotations)
			require.Equal(t, map[string]string{"kubevirt.io/vmi-name": "testvmi"}, m.Labels)
			require.Equal(t, []string{"kubevirt.io/migrationJobFinalize"}, m.Finalizers)
			require.Equal(t, vmi.VirtualMachineInstanceMigrationSpec{VMIName: "testvmi", Priority: new(vmi.MigrationSystemCritical)}, m.Spec)
		})
	}
}

func TestWhatTheDeschedulerAsksForComesAfterADrain(t *testing.T) {
	t.Parallel()
	o := marked()
	o.VMI.Annotations = map[string]string{"kubevirt.io/eviction-source": "descheduler"}
	require.Equal(t, vmi.MigrationSystemMaintenance, *made(t, evacuation.Decide(o)).Spec.Priority)
	o.VMI.Annotations["kubevirt.io/eviction-source"] = "another"
	require.Equal(t, vmi.MigrationSystemCritical, *made(t, evacuation.Decide(o)).Spec.Priority)
}

// A plan of an old cache is made again, and one after a failure is another.
func TestAMigrationIsMadeOnceAfterEachThatHasEnded(t *testing.T) {
	t.Parallel()
	o := marked()
	names := map[string]bool{}
	for _, before := range [][]*vmi.VirtualMachineInstanceMigration{
		nil,
		{migration("a", time.Minute, vmi.MigrationPhaseFailed)},
		{migration("a", time.Minute, vmi.MigrationPhaseFailed), migration("b", 0, vmi.MigrationPhaseFailed)},
	} {
		o.Migrations = before
		name := made(t, evacuation.Decide(o)).Name
		require.Equal(t, name, made(t, evacuation.Decide(o)).Name)
		require.False(t, names[name])
		names[name] = true
	}
	o.Migrations = o.Migrations[1:]
	require.True(t, names[made(t, evacuation.Decide(o)).Name], "the oldest may be deleted meanwhile")
	another := marked()
	another.VMI.UID = "another"
	require.False(t, names[made(t, evacuation.Decide(another)).Name])
}
