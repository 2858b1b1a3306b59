package replicaset_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/scheduler/replicaset"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

func TestASetNamesTheVMIsOfItsOldTemplate(t *testing.T) {
	w := newWorld(t, 3)
	w.settle()
	w.run()
	require.Nil(t, w.set.Status.Condition(vmi.ConditionReplicaOutdated))

	w.set.Spec.Template.ObjectMeta.Annotations = map[string]string{"a": "b"}
	w.set.Spec.Replicas = new(int32(3))
	w.now = w.now.Add(time.Minute)
	w.settle()
	require.Nil(t, w.set.Status.Condition(vmi.ConditionReplicaOutdated), "its guests are the same")

	w.set.Spec.Template.Spec.Hostname = "other"
	delete(w.vmis[2].Annotations, replicaset.TemplateAnnotation) // made before it was noted
	w.now = w.now.Add(time.Minute)
	w.settle()
	c := w.set.Status.Condition(vmi.ConditionReplicaOutdated)
	require.NotNil(t, c)
	require.Equal(t, replicaset.Outdated, c.Reason)
	require.Contains(t, c.Message, "2 of 3 VMIs were made from an earlier template: ")
	require.Contains(t, c.Message, w.vmis[0].Name)
	require.NotContains(t, c.Message, w.vmis[2].Name)

	for _, v := range w.vmis {
		v.DeletionTimestamp = nil
	}
	w.vmis = w.vmis[2:]
	w.now = w.now.Add(time.Minute)
	w.settle()
	w.run()
	require.Nil(t, w.set.Status.Condition(vmi.ConditionReplicaOutdated))
}

func TestATemplateThatTheWebhookCompletesLaterIsNoOther(t *testing.T) {
	w := newWorld(t, 1)
	w.settle()
	w.run()
	w.set = defaults.ReplicaSet(w.set, defaults.Profile{})
	require.NotEmpty(t, w.set.Spec.Template.Spec.Architecture)
	w.now = w.now.Add(time.Minute)
	w.settle()
	require.Nil(t, w.set.Status.Condition(vmi.ConditionReplicaOutdated))

	w.set.Spec.Template.Spec.Domain.Machine.Type = "pc"
	w.now = w.now.Add(time.Minute)
	w.settle()
	require.NotNil(t, w.set.Status.Condition(vmi.ConditionReplicaOutdated))
}
