package update_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/scheduler/update"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/migration"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// outdated is a VMI that runs on n1, and can move. It was made an hour ago.
func outdated(name string, change ...func(*update.Instance)) update.Instance {
	v := vmitest.New(vmitest.WithName(name), vmitest.WithPhase(vmi.PhaseRunning))
	v.UID, v.CreationTimestamp, v.Status.NodeName = types.UID(name), ago(time.Hour), "n1"
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod-" + name, UID: types.UID("pod-" + name)}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	i := update.Instance{VMI: v, Active: p, Pods: []*corev1.Pod{p}}
	liveMigratable(corev1.ConditionTrue)(&i)
	for _, c := range change {
		c(&i)
	}
	return i
}

func liveMigratable(s corev1.ConditionStatus) func(*update.Instance) {
	return func(i *update.Instance) {
		i.VMI.Status.SetCondition(vmi.Condition{Type: vmi.ConditionLiveMigratable, Status: s, Reason: vmi.ReasonLauncherTooOld}, ago(0))
	}
}

var stays = liveMigratable(corev1.ConditionFalse)

func on(node string) func(*update.Instance) {
	return func(i *update.Instance) { i.VMI.Status.NodeName = node }
}

func migrated(age time.Duration, p vmi.MigrationPhase) func(*update.Instance) {
	return func(i *update.Instance) {
		m := &vmi.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(age)), CreationTimestamp: ago(age)}}
		m.Status.Phase = p
		i.Migrations = append(i.Migrations, m)
	}
}

func in(namespace string) func(*update.Instance) {
	return func(i *update.Instance) { i.VMI.Namespace = namespace }
}

func refused(i *update.Instance) {
	i.Migrations[0].Status.SetCondition(vmi.Condition{Type: vmi.ConditionRejectedByResourceQuota, Status: corev1.ConditionTrue}, ago(0))
}

func tried(before time.Duration) func(*update.Instance) {
	return func(i *update.Instance) { i.Tried = now.Add(-before) }
}

func ending(i *update.Instance) { i.Active.DeletionTimestamp = new(ago(time.Second)) }

// steps are what is done for whom.
func steps(p update.Plan) string {
	var out []string
	for _, s := range p.Steps {
		switch a := s.Action.(type) {
		case scheduler.CreateMigration:
			out = append(out, "move "+a.Migration.Spec.VMIName)
		case scheduler.EvictPod:
			out = append(out, "evict "+strings.TrimPrefix(a.Name, "pod-"))
		}
	}
	return strings.Join(out, ", ")
}

func TestWhatIsDoneWithAVMIWhoseLauncherIsOutdated(t *testing.T) {
	t.Parallel()
	none, move, evict, both := config.Updates{}, config.Updates{Migrate: true}, config.Updates{Evict: true, BatchSize: 10}, config.Updates{Migrate: true, Evict: true, BatchSize: 10}
	change := func(f func(v *vmi.VirtualMachineInstance)) func(*update.Instance) {
		return func(i *update.Instance) { f(i.VMI) }
	}
	second := func(i *update.Instance) {
		i.Pods = append(i.Pods, &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}})
	}
	for name, tt := range map[string]struct {
		updates config.Updates
		is      update.Instance
		want    string
	}{
		"without a method":                     {none, outdated("a"), ""},
		"one that can move":                    {move, outdated("a"), "move a"},
		"one that can move, by both":           {both, outdated("a"), "move a"},
		"one that can move, by eviction":       {evict, outdated("a"), "evict a"},
		"one that cannot":                      {move, outdated("a", stays), ""},
		"one that cannot, by both":             {both, outdated("a", stays), "evict a"},
		"one of which that is not known":       {both, outdated("a", liveMigratable(corev1.ConditionUnknown)), "evict a"},
		"one that is to leave its node":        {both, outdated("a", change(func(v *vmi.VirtualMachineInstance) { v.Status.EvacuationNodeName = "n1" })), ""},
		"one that starts":                      {both, outdated("a", change(func(v *vmi.VirtualMachineInstance) { v.Status.Phase = vmi.PhaseScheduled })), ""},
		"one that is deleted":                  {both, outdated("a", change(func(v *vmi.VirtualMachineInstance) { v.DeletionTimestamp = new(ago(0)) })), ""},
		"one that moves":                       {both, outdated("a", migrated(time.Second, vmi.MigrationPhaseRunning)), ""},
		"one that has failed to move":          {both, outdated("a", migrated(time.Second, vmi.MigrationPhaseFailed)), "move a"},
		"one that has moved, as is not seen":   {both, outdated("a", migrated(time.Second, vmi.MigrationPhaseSucceeded)), ""},
		"one with a second pod":                {both, outdated("a", second), ""},
		"one that is evicted already":          {evict, outdated("a", ending), ""},
		"one whose pod is not known":           {evict, outdated("a", func(i *update.Instance) { i.Active = nil }), ""},
		"one whose pod is not known, by moves": {move, outdated("a", func(i *update.Instance) { i.Active = nil }), "move a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, steps(update.Decide(update.Observed{Instances: []update.Instance{tt.is}, Updates: tt.updates, Now: now})))
		})
	}
}

func TestTheMigrationForANewLauncher(t *testing.T) {
	t.Parallel()
	o := update.Observed{Instances: []update.Instance{outdated("a")}, Updates: config.Updates{Migrate: true}, Now: now}
	made := func() *vmi.VirtualMachineInstanceMigration {
		return update.Decide(o).Steps[0].Action.(scheduler.CreateMigration).Migration
	}
	m := made()
	require.Regexp(t, "^kubevirt-workload-update-[0-9a-v]{10}$", m.Name)
	require.Equal(t, map[string]string{"kubevirt.io/workloadUpdateMigration": ""}, m.Annotations)
	require.Equal(t, vmi.VirtualMachineInstanceMigrationSpec{VMIName: "a", Priority: new(vmi.MigrationSystemCritical)}, m.Spec)
	require.Equal(t, m.Name, made().Name, "one that is made twice is made once")
	migrated(time.Minute, vmi.MigrationPhaseFailed)(&o.Instances[0])
	require.NotEqual(t, m.Name, made().Name)
}

func TestMigrationsAreMadeForThePlacesThatAreLeft(t *testing.T) {
	t.Parallel()
	begun := func(uid types.UID, node string) migration.Place {
		return migration.Place{UID: uid, Node: node, Begun: true}
	}
	waits := func(uid types.UID, node string) migration.Place {
		return migration.Place{UID: uid, Node: node, Created: now}
	}
	three := []update.Instance{outdated("a"), outdated("b"), outdated("c")}
	spread := []update.Instance{outdated("a"), outdated("b"), outdated("c", on("n2")), outdated("d", on("n3")), outdated("e", on("n4")), outdated("f", on("n5"))}
	for name, tt := range map[string]struct {
		instances []update.Instance
		places    []migration.Place
		limits    migration.Limits
		want      string
	}{
		"two leave a node at once":              {three, nil, migration.Limits{}, "move a, move b"},
		"as many as the configuration says":     {three, nil, migration.Limits{Node: 3}, "move a, move b, move c"},
		"five in the cluster":                   {spread, nil, migration.Limits{}, "move a, move b, move c, move d, move e"},
		"one leaves the node already":           {three, []migration.Place{begun("x", "n1")}, migration.Limits{}, "move a"},
		"others are under way":                  {spread, []migration.Place{begun("v", "n6"), begun("w", "n6"), begun("x", "n7"), begun("y", "n7")}, migration.Limits{}, "move a"},
		"one of a user waits":                   {three, []migration.Place{waits("x", "n1")}, migration.Limits{}, "move a"},
		"one waits since its target is refused": {three, []migration.Place{{UID: "x", Node: "n1", Refused: true}}, migration.Limits{}, "move a, move b"},
		"none may run":                          {three, nil, migration.Limits{Cluster: -1}, ""},
		"a quota refuses one of the namespace": {[]update.Instance{
			outdated("a"), outdated("b", in("other"), migrated(time.Second, vmi.MigrationPhasePending), refused), outdated("c", in("other"))}, nil, migration.Limits{}, "move a"},
		"a quota refused one that has ended": {[]update.Instance{
			outdated("b", migrated(time.Second, vmi.MigrationPhaseFailed), refused), outdated("c")}, nil, migration.Limits{}, "move c, move b"},
		"those that failed come last": {[]update.Instance{
			outdated("a", migrated(time.Minute, vmi.MigrationPhaseFailed)), outdated("b", migrated(2*time.Minute, vmi.MigrationPhaseFailed)), outdated("c")},
			nil, migration.Limits{}, "move c, move b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := update.Observed{Instances: tt.instances, Updates: config.Updates{Migrate: true}, Places: tt.places, Limits: tt.limits, Now: now}
			require.Equal(t, tt.want, steps(update.Decide(o)))
		})
	}
}

func TestPodsAreEvictedInBatches(t *testing.T) {
	t.Parallel()
	updates := config.Updates{Migrate: true, Evict: true, BatchSize: 2, BatchInterval: time.Minute}
	three := []update.Instance{outdated("a", stays), outdated("b", stays), outdated("c", stays)}
	for name, tt := range map[string]struct {
		instances []update.Instance
		last      time.Time
		want      string
		recheck   time.Duration
	}{
		"the first batch":                        {three, time.Time{}, "evict a, evict b", time.Minute},
		"the interval is not over":               {three, now.Add(-20 * time.Second), "", 40 * time.Second},
		"the next one":                           {three, now.Add(-time.Minute), "evict a, evict b", time.Minute},
		"one of the last has not ended":          {append(three[1:2:2], outdated("d", stays, ending), three[2]), time.Time{}, "evict b", time.Minute},
		"none of the last has":                   {[]update.Instance{three[0], outdated("d", stays, ending), outdated("e", stays, ending), outdated("f", stays, ending)}, time.Time{}, "", time.Minute},
		"one that was refused comes last":        {[]update.Instance{outdated("a", stays, tried(time.Hour)), outdated("b", stays, tried(2*time.Hour)), outdated("c", stays)}, time.Time{}, "evict c, evict b", time.Minute},
		"the others move":                        {[]update.Instance{outdated("a"), outdated("b", stays)}, time.Time{}, "move a, evict b", time.Minute},
		"the others move, whatever the interval": {[]update.Instance{outdated("a"), outdated("b", stays)}, now, "move a", time.Minute},
		"there is nothing to evict":              {[]update.Instance{outdated("a")}, now, "move a", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := update.Decide(update.Observed{Instances: tt.instances, Updates: updates, LastBatch: tt.last, Now: now})
			require.Equal(t, tt.want, steps(p))
			require.Equal(t, tt.recheck, p.Recheck)
		})
	}
}
