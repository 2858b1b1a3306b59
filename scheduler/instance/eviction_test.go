package instance_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func strategy(s vmi.EvictionStrategy) vmitest.Option {
	return func(v *vmi.VirtualMachineInstance) { v.Spec.EvictionStrategy = &s }
}

func evacuating(v *vmi.VirtualMachineInstance)   { v.Status.EvacuationNodeName = node }
func evacuatedOff(v *vmi.VirtualMachineInstance) { v.Status.EvacuationNodeName = "node0" }

// movable is a VMI that can move to another node.
func movable(v *vmi.VirtualMachineInstance) {
	v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionLiveMigratable, Status: corev1.ConditionTrue}, metav1.Now())
}

// immovable is one that cannot.
func immovable(v *vmi.VirtualMachineInstance) {
	v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionLiveMigratable, Status: corev1.ConditionFalse, Reason: "R", Message: "M"}, metav1.Now())
}

// migrates is a VMI whose migration is as the state says.
func migrates(m vmi.MigrationState) vmitest.Option {
	return func(v *vmi.VirtualMachineInstance) {
		m.TargetNode = "node2"
		v.Status.MigrationState = &m
	}
}

// target is a pod that a migration moves the VMI to.
func target(p *corev1.Pod) {
	p.Name, p.UID, p.Labels[vmi.MigrationJobLabel] = "virt-launcher-target", "target", "m1"
}

const (
	mayNotMove = `VMI testvmi is configured with an eviction strategy but is not live-migratable: ` +
		`stop or delete the VMI, or set evictionStrategy None or LiveMigrateIfPossible on its owner and start it again`
	toBeMoved  = `Eviction triggered evacuation of VMI "default/testvmi"`
	inProgress = "Evacuation in progress: " + toBeMoved + ": "
	byAnother  = inProgress + `it has evictionStrategy External, and another controller is to move or delete it, ` +
		`which status.evacuationNodeName asks for; if there is none, delete the VMI`
)

func TestEviction(t *testing.T) {
	t.Parallel()
	live, external, possible := strategy(vmi.EvictionLiveMigrate), strategy(vmi.EvictionExternal), strategy(vmi.EvictionLiveMigrateIfPossible)
	clusterMigrates := defaults.Profile{EvictionStrategy: vmi.EvictionLiveMigrate}
	stays, leaves := instance.Verdict{Refusal: mayNotMove}, instance.Verdict{Refusal: toBeMoved, Leave: node}
	for name, tt := range map[string]struct {
		vmi     *vmi.VirtualMachineInstance
		pod     *corev1.Pod
		cluster defaults.Profile
		want    instance.Verdict
	}{
		"a VMI that names no strategy is evicted":              {vmi: stored(vmi.PhaseRunning, movable), pod: launcher(running)},
		"None is evicted":                                      {vmi: stored(vmi.PhaseRunning, strategy(vmi.EvictionNone), movable), pod: launcher(running)},
		"LiveMigrateIfPossible is evicted if it is impossible": {vmi: stored(vmi.PhaseRunning, possible, immovable), pod: launcher(running)},
		"or if that is not known":                              {vmi: stored(vmi.PhaseRunning, possible), pod: launcher(running)},
		"else it is moved":                                     {vmi: stored(vmi.PhaseRunning, possible, movable), pod: launcher(running), want: leaves},
		"LiveMigrate is moved":                                 {vmi: stored(vmi.PhaseRunning, live, movable), pod: launcher(running), want: leaves},
		"LiveMigrate stays if that is not known":               {vmi: stored(vmi.PhaseRunning, live), pod: launcher(running), want: stays},
		"or impossible": {vmi: stored(vmi.PhaseRunning, live, immovable), pod: launcher(running),
			want: instance.Verdict{Refusal: strings.Replace(mayNotMove, "live-migratable", "live-migratable (R: M)", 1)}},
		"one that is to leave waits for its migration": {vmi: stored(vmi.PhaseRunning, live, movable, evacuating), pod: launcher(running), want: instance.Verdict{Refusal: inProgress + "its migration waits, for what kubectl describe vmim -n default -l kubevirt.io/vmi-name=testvmi says"}},
		"also if it has moved before": {vmi: stored(vmi.PhaseRunning, live, movable, evacuating, migrates(vmi.MigrationState{Completed: true})), pod: launcher(running),
			want: instance.Verdict{Refusal: inProgress + "its migration waits, for what kubectl describe vmim -n default -l kubevirt.io/vmi-name=testvmi says"}},
		"it is prepared": {vmi: stored(vmi.PhaseRunning, live, movable, evacuating, migrates(vmi.MigrationState{})), pod: launcher(running),
			want: instance.Verdict{Refusal: inProgress + "node node2 is prepared for it"}},
		"it moves": {vmi: stored(vmi.PhaseRunning, live, movable, evacuating, migrates(vmi.MigrationState{StartTimestamp: &metav1.Time{}})), pod: launcher(running),
			want: instance.Verdict{Refusal: inProgress + "it moves to node node2"}},
		"it has failed to": {vmi: stored(vmi.PhaseRunning, live, movable, evacuating, migrates(vmi.MigrationState{Completed: true, Failed: true, FailureReason: "no way"})), pod: launcher(running),
			want: instance.Verdict{Refusal: inProgress + "its last migration has failed, and another is made: no way"}},
		"External stays and is marked with the pod's node":     {vmi: stored(vmi.PhaseRunning, external), pod: launcher(running), want: leaves},
		"also if it cannot be moved":                           {vmi: stored(vmi.PhaseRunning, external, immovable), pod: launcher(running), want: leaves},
		"External is not marked again":                         {vmi: stored(vmi.PhaseRunning, external, evacuating), pod: launcher(running), want: instance.Verdict{Refusal: byAnother}},
		"External that was marked for another node is marked":  {vmi: stored(vmi.PhaseRunning, external, evacuatedOff), pod: launcher(running), want: leaves},
		"the cluster decides for a VMI that names no strategy": {vmi: stored(vmi.PhaseRunning), pod: launcher(running), cluster: clusterMigrates, want: stays},
		"a VMI decides against the cluster":                    {vmi: stored(vmi.PhaseRunning, strategy(vmi.EvictionNone)), pod: launcher(running), cluster: clusterMigrates},
		"a VMI whose node does not answer stays":               {vmi: stored(vmi.PhaseUnknown, live, ranOn(podUID)), pod: launcher(running), want: stays},
		"a VMI whose guest does not run yet stays":             {vmi: stored(vmi.PhaseScheduled, live), pod: launcher(running), want: stays},
		"a VMI whose image is still pulled stays":              {vmi: stored(vmi.PhaseScheduling, live), pod: launcher(bound), want: stays},
		"a VMI whose pod was created this moment stays":        {vmi: stored(vmi.PhasePending, live), pod: launcher(), want: stays},
		"a VMI that powered off holds no pod":                  {vmi: stored(vmi.PhaseSucceeded, live), pod: launcher(running)},
		"a VMI that failed holds no pod":                       {vmi: stored(vmi.PhaseFailed, external), pod: launcher(running)},
		"a VMI that is deleted holds no pod":                   {vmi: stored(vmi.PhaseRunning, live, deleted), pod: launcher(running)},
		"a pod that ended goes":                                {vmi: stored(vmi.PhaseRunning, live, movable), pod: launcher(exited(0, 0, ""))},
		"a pod that its node refused goes":                     {vmi: stored(vmi.PhaseScheduling, live), pod: launcher(bound, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })},
		"a pod that is being deleted goes":                     {vmi: stored(vmi.PhaseRunning, live, movable), pod: launcher(running, leaving)},
		"a pod without an owner goes":                          {vmi: stored(vmi.PhaseRunning, live, movable), pod: launcher(running, strange)},
		"a pod of a VMI that had the name before goes":         {vmi: stored(vmi.PhaseRunning, live, func(v *vmi.VirtualMachineInstance) { v.UID = "another" }), pod: launcher(running)},
		"a pod that only names the VMI as its owner goes":      {vmi: stored(vmi.PhaseRunning, external), pod: launcher(running, other)},
		"so it does before the guest runs":                     {vmi: stored(vmi.PhaseScheduling, external), pod: launcher(bound, func(p *corev1.Pod) { p.Name = "virt-launcher-mine" })},
		"the pod that a VMI moves to stays":                    {vmi: stored(vmi.PhaseRunning, live, movable, ranOn(podUID)), pod: launcher(running, target), want: instance.Verdict{Refusal: `Eviction request for target Pod: VMI "default/testvmi" moves to it`}},
		"unless it has ended":                                  {vmi: stored(vmi.PhaseRunning, live, movable, ranOn(podUID)), pod: launcher(exited(0, 0, ""), target)},
		"or the VMI's strategy is None":                        {vmi: stored(vmi.PhaseRunning, movable, ranOn(podUID)), pod: launcher(running, target)},
		"a pod that only has the labels of a target goes":      {vmi: stored(vmi.PhaseRunning, live, movable, ranOn(podUID)), pod: launcher(running, target, func(p *corev1.Pod) { p.Labels[vmi.CreatedByLabel] = "another" })},
		"a pod that the VMI has moved to is the active one":    {vmi: stored(vmi.PhaseRunning, live, movable, ranOn("target")), pod: launcher(running, target), want: leaves},
		"a target that it has left again goes":                 {vmi: stored(vmi.PhaseRunning, live, movable, ranOn("third"), migrates(vmi.MigrationState{SourcePod: "virt-launcher-target", Completed: true})), pod: launcher(running, target)},
		"the pod that it has left goes":                        {vmi: stored(vmi.PhaseRunning, live, movable, ranOn("target")), pod: launcher(running)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, pod := tt.vmi.DeepCopy(), tt.pod.DeepCopy()
			require.Equal(t, tt.want, instance.Eviction(tt.vmi, tt.pod, tt.cluster))
			require.Equal(t, before, tt.vmi, "the VMI is not changed")
			require.Equal(t, pod, tt.pod, "nor is the pod")
		})
	}
}

// ranOn is a VMI that was handed over in the pod.
func ranOn(pod types.UID) vmitest.Option {
	return func(v *vmi.VirtualMachineInstance) { v.Status.ActivePods = map[types.UID]string{pod: node} }
}
