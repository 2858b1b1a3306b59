package instance_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
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

const (
	mayNotMove = `VMI "default/testvmi" has evictionStrategy LiveMigrate and cannot be migrated: ` +
		`stop or delete the VMI, or set evictionStrategy None or LiveMigrateIfPossible on its owner and start it again`
	toBeMoved = `Eviction triggered evacuation of VMI "default/testvmi": it has evictionStrategy External, ` +
		`and another controller is to move or delete it, which status.evacuationNodeName asks for; if there is none, delete the VMI`
)

func TestEviction(t *testing.T) {
	t.Parallel()
	live, external := strategy(vmi.EvictionLiveMigrate), strategy(vmi.EvictionExternal)
	clusterMigrates := defaults.Profile{EvictionStrategy: vmi.EvictionLiveMigrate}
	for name, tt := range map[string]struct {
		vmi     *vmi.VirtualMachineInstance
		pod     *corev1.Pod
		cluster defaults.Profile
		want    instance.Verdict
	}{
		"a VMI that names no strategy is evicted":                    {vmi: stored(vmi.PhaseRunning), pod: launcher(running)},
		"None is evicted":                                            {vmi: stored(vmi.PhaseRunning, strategy(vmi.EvictionNone)), pod: launcher(running)},
		"LiveMigrateIfPossible is evicted, since it is not possible": {vmi: stored(vmi.PhaseRunning, strategy(vmi.EvictionLiveMigrateIfPossible)), pod: launcher(running)},
		"LiveMigrate stays":                                          {vmi: stored(vmi.PhaseRunning, live), pod: launcher(running), want: instance.Verdict{Refusal: mayNotMove}},
		"External stays and is marked with the pod's node":           {vmi: stored(vmi.PhaseRunning, external), pod: launcher(running), want: instance.Verdict{Refusal: toBeMoved, Leave: node}},
		"External is not marked again":                               {vmi: stored(vmi.PhaseRunning, external, evacuating), pod: launcher(running), want: instance.Verdict{Refusal: toBeMoved}},
		"External that was marked for another node is marked":        {vmi: stored(vmi.PhaseRunning, external, evacuatedOff), pod: launcher(running), want: instance.Verdict{Refusal: toBeMoved, Leave: node}},
		"External without a node stays, but leaves none":             {vmi: stored(vmi.PhaseScheduling, external), pod: launcher(), want: instance.Verdict{Refusal: toBeMoved}},
		"the cluster decides for a VMI that names no strategy":       {vmi: stored(vmi.PhaseRunning), pod: launcher(running), cluster: clusterMigrates, want: instance.Verdict{Refusal: mayNotMove}},
		"a VMI decides against the cluster":                          {vmi: stored(vmi.PhaseRunning, strategy(vmi.EvictionNone)), pod: launcher(running), cluster: clusterMigrates},
		"a VMI whose node does not answer stays":                     {vmi: stored(vmi.PhaseUnknown, live, ranOn(podUID)), pod: launcher(running), want: instance.Verdict{Refusal: mayNotMove}},
		"a VMI whose guest does not run yet stays":                   {vmi: stored(vmi.PhaseScheduled, live), pod: launcher(running), want: instance.Verdict{Refusal: mayNotMove}},
		"a VMI whose image is still pulled stays":                    {vmi: stored(vmi.PhaseScheduling, live), pod: launcher(bound), want: instance.Verdict{Refusal: mayNotMove}},
		"a VMI whose pod was created this moment stays":              {vmi: stored(vmi.PhasePending, live), pod: launcher(), want: instance.Verdict{Refusal: mayNotMove}},
		"a VMI that powered off holds no pod":                        {vmi: stored(vmi.PhaseSucceeded, live), pod: launcher(running)},
		"a VMI that failed holds no pod":                             {vmi: stored(vmi.PhaseFailed, external), pod: launcher(running)},
		"a VMI that is deleted holds no pod":                         {vmi: stored(vmi.PhaseRunning, live, deleted), pod: launcher(running)},
		"a pod that ended goes":                                      {vmi: stored(vmi.PhaseRunning, live), pod: launcher(exited(0, 0, ""))},
		"a pod that its node refused goes":                           {vmi: stored(vmi.PhaseScheduling, live), pod: launcher(bound, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })},
		"a pod that is being deleted goes":                           {vmi: stored(vmi.PhaseRunning, live), pod: launcher(running, leaving)},
		"a pod without an owner goes":                                {vmi: stored(vmi.PhaseRunning, live), pod: launcher(running, strange)},
		"a pod of a VMI that had the name before goes":               {vmi: stored(vmi.PhaseRunning, live, func(v *vmi.VirtualMachineInstance) { v.UID = "another" }), pod: launcher(running)},
		"a pod that only names the VMI as its owner goes":            {vmi: stored(vmi.PhaseRunning, external), pod: launcher(running, other)},
		"so it does before the guest runs":                           {vmi: stored(vmi.PhaseScheduling, external), pod: launcher(bound, func(p *corev1.Pod) { p.Name = "virt-launcher-mine" })},
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
