package instance_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/network/cni"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestAVMIWaitsForTheDefinitionsOfItsNetworksAndLooksLessAndLessOften(t *testing.T) {
	t.Parallel()
	v := stored(vmi.PhaseUnset, vmitest.WithMasquerade("default"), vmitest.WithMultus("lan", "lan"), vmitest.WithMultus("san", "infra/san"))
	o := observe(v)
	o.Definitions = map[string]*cni.Definition{"lan": nil, "san": {Resource: "example.com/san"}}
	p := instance.Decide(o)
	require.Equal(t, 2*time.Second, p.Recheck)
	s := statusOf(t, p)
	require.Equal(t, vmi.PhasePending, s.Phase)
	c := s.Condition(vmi.ConditionSynchronized)
	require.Equal(t, "NoNetworkFound", c.Reason)
	require.Equal(t, "network lan: NetworkAttachmentDefinition lan does not exist in namespace default: create it, and the VMI starts", c.Message)

	v.Status = s
	for waited, look := range map[time.Duration]time.Duration{0: 2 * time.Second, 20 * time.Second: 10 * time.Second, time.Hour: time.Minute} {
		o.Now = now.Add(waited)
		p = instance.Decide(o)
		require.Empty(t, p.Actions, "it is said once")
		require.Equal(t, look, p.Recheck, waited)
	}

	o.Now, o.Definitions["lan"] = now, &cni.Definition{Resource: "memory"}
	s = statusOf(t, instance.Decide(o))
	c = s.Condition(vmi.ConditionSynchronized)
	require.Equal(t, instance.NetworkResourceInvalid, c.Reason)
	require.Contains(t, c.Message, `network lan: the annotation k8s.v1.cni.cncf.io/resourceName of NetworkAttachmentDefinition lan in namespace default: "memory" is no resource of a device plugin`)

	o.Definitions["lan"] = &cni.Definition{}
	p = instance.Decide(o)
	require.IsType(t, scheduler.CreatePod{}, p.Actions[0])
	limits := p.Actions[0].(scheduler.CreatePod).Pod.Spec.Containers[0].Resources.Limits
	require.Equal(t, int64(1), limits.Name("example.com/san", "").Value())
	require.NotContains(t, limits, corev1.ResourceName("example.com/lan"))
}

func TestADefinitionThatIsNotLookedForIsNotMissing(t *testing.T) {
	t.Parallel()
	p := instance.Decide(observe(stored(vmi.PhaseUnset, vmitest.WithMultus("lan", "lan"))))
	require.IsType(t, scheduler.CreatePod{}, p.Actions[0])
}
