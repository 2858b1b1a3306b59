package vmitest_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// docs/testing.md shows what is between the two lines.
//
// begin

// operator restarts VMs whose guests have no agent.
type operator struct {
	client *client.Client
	events record.EventRecorder
}

// Reconcile restarts the VM if its guest runs without an agent, and says so.
func (o operator) Reconcile(ctx context.Context, namespace, name string) error {
	v, err := o.client.VirtualMachineInstances(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || v.Status.Phase != vmi.PhaseRunning || v.Status.Condition(vmi.ConditionAgentConnected) != nil {
		return err
	}
	if err := o.client.VirtualMachines(namespace).Restart(ctx, name, vmi.RestartOptions{}); err != nil {
		return err
	}
	o.events.Event(v, corev1.EventTypeWarning, "AgentGone", "The guest is restarted: it has no agent")
	return nil
}

func TestAVMWhoseGuestHasNoAgentIsRestarted(t *testing.T) {
	for _, phase := range vmitest.Phases() {
		m := vmitest.NewVM(vmi.RunAlways, vmitest.WithName("web"))
		c, err := client.New(fake.New(m, vmitest.InstanceOf(m, vmitest.InPhase(phase))).Config())
		require.NoError(t, err)
		events := &vmitest.Recorder{}
		require.NoError(t, operator{c, events}.Reconcile(t.Context(), "default", "web"))

		now, err := c.VirtualMachines("default").Get(t.Context(), "web", metav1.GetOptions{})
		require.NoError(t, err)
		if phase != vmi.PhaseRunning {
			require.Empty(t, now.Status.StateChangeRequests, "a VMI that is %q stays as it is", phase)
			require.Empty(t, events.Events())
			continue
		}
		require.Equal(t, []vmi.StateChangeRequest{{Action: vmi.StopRequest, UID: new(vmitest.InstanceUID)}, {Action: vmi.StartRequest}}, now.Status.StateChangeRequests)
		require.Equal(t, "AgentGone", events.Events()[0].Reason)
	}
}

// end

func TestThePageShowsThisTest(t *testing.T) {
	source, err := os.ReadFile("operator_test.go")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(source), "\n// begin\n\n")
	shown, _, ok := strings.Cut(rest, "\n// end\n")
	require.True(t, ok)
	page, err := os.ReadFile("../../docs/testing.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "```go\n"+shown+"```\n", "docs/testing.md shows another test")
	require.LessOrEqual(t, strings.Count(shown, "\n"), 45)
}
