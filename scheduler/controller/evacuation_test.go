package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/vmi"
)

func TestAVMIThatHasToLeaveItsNodeIsMigratedOnceAtATime(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		mark  string
		taint []corev1.Taint
		made  int
	}{
		"it is marked":        {"n1", nil, 1},
		"its node is drained": {"", []corev1.Taint{{Key: vmi.DrainTaintKey, Effect: corev1.TaintEffectNoSchedule}}, 1},
		"it need not leave":   {"", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := launcher(t)
			p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning
			v := stored(vmi.PhaseRunning)
			v.Spec.EvictionStrategy = new(vmi.EvictionLiveMigrate)
			v.Status.NodeName, v.Status.EvacuationNodeName, v.Status.ActivePods = "n1", tt.mark, map[types.UID]string{p.UID: "n1"}
			v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionLiveMigratable, Status: corev1.ConditionTrue}, metav1.Now())
			c, _ := newSweep(t, p, v)
			require.NoError(t, c.caches.nodes.GetIndexer().Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: corev1.NodeSpec{Taints: tt.taint}}))
			v, err := c.cfg.Client.VirtualMachineInstances(v.Namespace).Get(t.Context(), v.Name, metav1.GetOptions{})
			require.NoError(t, err)
			require.NoError(t, c.caches.instances.GetIndexer().Add(v))
			migrations := c.cfg.Client.VirtualMachineInstanceMigrations(v.Namespace)
			decide := func() []vmi.VirtualMachineInstanceMigration {
				_, err := c.instances.reconcile(t.Context(), reconcile.Key(v))
				require.NoError(t, err)
				l, err := migrations.List(t.Context(), metav1.ListOptions{})
				require.NoError(t, err)
				return l.Items
			}
			require.Len(t, decide(), tt.made)
			all := decide()
			require.Len(t, all, tt.made, "the cache does not have it yet")
			if tt.made == 0 {
				return
			}
			m := &all[0]
			require.Equal(t, v.Name, m.Spec.VMIName)
			require.Empty(t, evacuatedBy(m))
			require.NoError(t, c.migrations.loop.cached.GetIndexer().Add(m))
			require.Len(t, decide(), 1, "it waits for it")
			ended := m.DeepCopy()
			ended.Status.Phase = vmi.MigrationPhaseFailed
			require.Equal(t, []string{reconcile.Key(v)}, evacuatedBy(ended))
			require.NoError(t, c.migrations.loop.cached.GetIndexer().Update(ended))
			require.Len(t, decide(), 2, "and tries again")
		})
	}
}
