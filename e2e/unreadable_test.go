package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// loosenVMIs makes the schema of VMIs one that allows any spec, and the webhooks and
// the policy about changes of a spec skip the namespace, until the test ends.
func (s space) loosenVMIs() {
	s.t.Helper()
	const crd, spec = "customresourcedefinition/virtualmachineinstances.kubevirt.io", "/spec/versions/0/schema/openAPIV3Schema/properties/spec"
	patch := func(object, operation, path string, value any) {
		data, err := json.Marshal([]map[string]any{{"op": operation, "path": path, "value": value}})
		require.NoError(s.t, err)
		out, err := world.kubectl.Run(context.Background(), "patch", object, "--type=json", "-p", string(data))
		require.NoError(s.t, err, out)
	}
	var before any
	require.NoError(s.t, json.Unmarshal([]byte(s.kubectl("get", crd, "-o", "jsonpath={.spec.versions[0].schema.openAPIV3Schema.properties.spec}")), &before))
	patch(crd, "replace", spec, map[string]any{"x-kubernetes-preserve-unknown-fields": true})
	s.t.Cleanup(func() { patch(crd, "replace", spec, before) })
	others := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: corev1.LabelMetadataName, Operator: "NotIn", Values: []string{s.name}}}}
	const binding = "validatingadmissionpolicybinding/spec.kubevirt.io"
	patch(binding, "add", "/spec/matchResources", map[string]any{"namespaceSelector": others})
	s.t.Cleanup(func() { patch(binding, "replace", "/spec/matchResources", map[string]any{}) })
	for kind, names := range map[string][]string{"mutating": {"defaults", "defaults.updates"}, "validating": {"validation"}} {
		webhooks := kind + "webhookconfiguration/virt-controller.kubevirt.io"
		all := strings.Fields(s.kubectl("get", webhooks, "-o", "jsonpath={.webhooks[*].name}"))
		for _, name := range names {
			i := slices.Index(all, name+".virt-controller.kubevirt.io")
			require.NotEqual(s.t, -1, i, "%v", all)
			path := fmt.Sprintf("/webhooks/%d/namespaceSelector", i)
			patch(webhooks, "add", path, others)
			s.t.Cleanup(func() { patch(webhooks, "replace", path, map[string]any{}) })
		}
	}
}

// TestAGuestWhoseVMICannotBeDecodedRunsOn does not run beside the others: the schema
// is every VMI's.
func TestAGuestWhoseVMICannotBeDecodedRunsOn(t *testing.T) {
	s := newSpace(t)
	s.create(guest("odd", cloudConfig("hostname: odd")))
	v := s.awaitSteady("odd")
	p := s.pod(v)
	s.loosenVMIs()
	eventually(t, soon, func() error {
		// Until the schema and the webhooks are what they were made, this is refused.
		out, err := world.kubectl.Run(t.Context(), "-n", s.name, "patch", "vmi", "odd", "--type=merge", "-p", `{"spec":{"domain":{"cpu":{"cores":-1}}}}`)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	get := func() *vmi.VirtualMachineInstance {
		v, err := world.vmis.VirtualMachineInstances(s.name).Get(t.Context(), "odd", metav1.GetOptions{})
		require.ErrorIs(t, err, vmi.ErrUnreadable)
		return v
	}
	eventually(t, soon, func() error {
		if c := get().Status.Condition(vmi.ConditionSynchronized); c == nil || c.Reason != "UnreadableSpec" || !strings.HasPrefix(c.Message, "spec.domain.cpu.cores: -1: must be a whole number") {
			return fmt.Errorf("the condition is %+v", c)
		}
		return nil
	})
	e := s.awaitEvent(v, "UnreadableSpec")
	require.Equal(t, corev1.EventTypeWarning, e.Type)
	require.Equal(t, "virt-handler", e.Source.Component)

	s.create(guest("other", cloudConfig("hostname: other")))
	s.awaitPhase("other", vmi.PhaseRunning)
	require.Equal(t, vmi.PhaseRunning, get().Status.Phase)
	now := s.pod(v)
	require.Equal(t, p.UID, now.UID)
	require.Nil(t, now.DeletionTimestamp)
	require.Zero(t, now.Status.ContainerStatuses[0].RestartCount)

	require.Contains(t, s.kubectl("get", "vmi"), "odd")
	s.kubectl("delete", "vmi", "odd", "--timeout=300s")
	s.awaitGone(v)
	require.Equal(t, vmi.PhaseRunning, s.get("other").Status.Phase)
	_, err := world.vmis.VirtualMachineInstances(s.name).List(t.Context(), metav1.ListOptions{})
	require.False(t, errors.Is(err, vmi.ErrUnreadable), "%v", err)
}
