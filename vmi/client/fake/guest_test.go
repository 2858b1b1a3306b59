package fake

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/vmi/verb"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// idle are the calls of launchers that show nothing in an answer or in a status, and why.
var idle = map[string]string{
	"softreboot": "a guest of the fake does not boot",
	"reset":      "a guest of the fake does not boot",
}

// bodies are those of the verbs that need one.
var bodies = map[string]string{"freeze": `{"unfreezeTimeout": "1s"}`}

// A verb that asks a guest is answered with the zero value unless the fake plays it.
func TestTheGuestsOfTheFakePlayEachCallOfALauncher(t *testing.T) {
	for _, v := range verb.All() {
		i := vmitest.New(vmitest.WithPhase(vmi.PhaseRunning), vmitest.WithMasquerade("default"))
		i.Status.Interfaces = []vmi.InterfaceStatus{{Name: "default"}}
		i.Status.SetCondition(vmi.Condition{Type: vmi.ConditionAgentConnected, Status: corev1.ConditionTrue}, metav1.Now())
		if v.Subresource == "unpause" {
			i.Status.SetCondition(vmi.Condition{Type: vmi.ConditionPaused, Status: corev1.ConditionTrue}, metav1.Now())
		}
		p, err := v.Decide(verb.Observed{Namespace: i.Namespace, Name: i.Name, VM: vmitest.NewVM(vmi.RunAlways), VMI: i, Body: []byte(bodies[v.Subresource]), Tail: []string{"80"}})
		if v.Resource != verb.VMIs {
			continue
		}
		require.True(t, err == nil || v.Subresource == "evacuate/cancel", "%s: say in this test how it is called: %v", v.Path(), err)
		_, plays := played[v.Subresource]
		_, does := idle[v.Subresource]
		require.Equal(t, p.Call != nil, plays || does, "%s: play it in guest.go, or say in this test why there is nothing to play", v.Path())
		require.False(t, plays && does, "%s: is played", v.Path())
		if v.Answer != nil {
			require.True(t, plays, "%s: its answer is the zero value", v.Path())
		}
	}
}
