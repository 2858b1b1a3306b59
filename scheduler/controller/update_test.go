package controller

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgotesting "k8s.io/client-go/testing"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

func TestVMIsWithAnOutdatedLauncherAreMovedOrEvictedInBatches(t *testing.T) {
	t.Parallel()
	busy := apierrors.NewTooManyRequests("it may only migrate", 0)
	for name, tt := range map[string]struct {
		updates  config.Updates
		movable  corev1.ConditionStatus
		labelled bool
		moved    bool
		answer   error
		made     int
		evicted  int
		// after is when the next decision is due, and fails says that this one did not succeed.
		after time.Duration
		fails bool
	}{
		"no method":                      {movable: corev1.ConditionTrue, labelled: true},
		"it can move":                    {updates: config.Updates{Migrate: true}, movable: corev1.ConditionTrue, labelled: true, made: 1},
		"it has just moved":              {updates: config.Updates{Migrate: true}, movable: corev1.ConditionTrue, labelled: true, moved: true},
		"it cannot move":                 {updates: config.Updates{Migrate: true}, movable: corev1.ConditionFalse, labelled: true},
		"it is not outdated":             {updates: config.Updates{Migrate: true}, movable: corev1.ConditionTrue},
		"it cannot move, and is evicted": {updates: config.Updates{Evict: true, BatchSize: 1, BatchInterval: time.Minute}, movable: corev1.ConditionFalse, labelled: true, evicted: 1, after: time.Minute},
		"its eviction is refused": {updates: config.Updates{Evict: true, BatchSize: 1, BatchInterval: time.Minute},
			movable: corev1.ConditionFalse, labelled: true, answer: busy, evicted: 1, after: time.Minute},
		"its eviction is not possible": {updates: config.Updates{Evict: true, BatchSize: 1, BatchInterval: time.Minute},
			movable: corev1.ConditionFalse, labelled: true, answer: apierrors.NewInternalError(context.Canceled), evicted: 1, after: time.Minute, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := launcher(t)
			p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning
			v := stored(vmi.PhaseRunning)
			v.Status.NodeName, v.Status.ActivePods = "n1", map[types.UID]string{p.UID: "n1"}
			v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionLiveMigratable, Status: tt.movable}, metav1.Now())
			if tt.labelled {
				v.Labels = map[string]string{vmi.OutdatedLauncherLabel: ""}
			}
			if v.Status.LauncherContainerImageVersion = "example/virt-launcher:older"; tt.moved {
				v.Status.MigrationState = &vmi.MigrationState{Completed: true}
			}
			c, kube := newSweep(t, p, v)
			now := time.Now()
			c.cfg.Cluster.Updates, c.cfg.Now = tt.updates, func() time.Time { return now }
			var evictions []*policyv1.Eviction
			kube.PrependReactor("create", "pods", func(a clientgotesting.Action) (bool, runtime.Object, error) {
				e, ok := a.(clientgotesting.CreateAction).GetObject().(*policyv1.Eviction)
				if ok {
					require.Equal(t, p.Namespace, a.GetNamespace())
					evictions = append(evictions, e)
				}
				return ok, e, tt.answer
			})
			v, err := c.cfg.Client.VirtualMachineInstances(v.Namespace).Get(t.Context(), v.Name, metav1.GetOptions{})
			require.NoError(t, err)
			require.NoError(t, c.caches.instances.GetIndexer().Add(v))
			decide := func() time.Duration {
				after, err := c.updater.reconcile(t.Context(), "all")
				require.Equal(t, tt.fails, err != nil, "%v", err)
				return after
			}
			require.Equal(t, tt.after, decide())
			require.Equal(t, map[bool]int64{false: 0, true: 1}[tt.labelled], c.updater.outdated.Load())
			l, err := c.cfg.Client.VirtualMachineInstanceMigrations(v.Namespace).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			require.Len(t, l.Items, tt.made)
			require.Len(t, evictions, tt.evicted)
			for _, e := range evictions {
				require.Equal(t, p.Name, e.Name)
				require.Equal(t, p.UID, *e.DeleteOptions.Preconditions.UID)
			}

			tt.fails = false
			now = now.Add(time.Second)
			require.Equal(t, 4*time.Second, decide(), "the next decision waits")
			require.Len(t, evictions, tt.evicted)
			now = now.Add(tt.after + 4*time.Second)
			tt.fails = tt.answer != nil && !apierrors.IsTooManyRequests(tt.answer)
			decide()
			require.Len(t, evictions, 2*tt.evicted)
		})
	}
}

func TestAVMIThatHasEndedIsNotOutdated(t *testing.T) {
	t.Parallel()
	c, _ := newSweep(t, launcher(t))
	v := stored(vmi.PhaseRunning)
	v.Labels = map[string]string{vmi.OutdatedLauncherLabel: ""}
	require.NoError(t, c.caches.instances.GetIndexer().Add(v))
	require.Len(t, c.updater.all(), 1)
	v = v.DeepCopy()
	v.Status.Phase = vmi.PhaseSucceeded
	require.NoError(t, c.caches.instances.GetIndexer().Update(v))
	require.Empty(t, c.updater.all())
}
