package controller

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/migration"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// tripper sends requests.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAMigrationIsCreatedOnceAndARefusalIsAnEvent(t *testing.T) {
	t.Parallel()
	v := vmitest.New()
	m := &vmi.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: "m"}, Spec: vmi.VirtualMachineInstanceMigrationSpec{VMIName: v.Name}}
	plan := scheduler.Plan{Actions: []scheduler.Action{scheduler.CreateMigration{Migration: m}}}
	fails := false
	cfg := fake.New(v).Config()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			if fails {
				return nil, errors.New("no")
			}
			return next.RoundTrip(r)
		})
	})
	api, err := client.New(cfg)
	require.NoError(t, err)
	kube := kubefake.NewClientset()
	reasons := func() (all []string) {
		l, err := kube.CoreV1().Events(v.Namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, e := range l.Items {
			require.Equal(t, v.Name, e.InvolvedObject.Name)
			all = append(all, e.Type+" "+e.Reason)
		}
		return all
	}
	do := func() error {
		_, err := Execute(t.Context(), Executor{Client: api, Kube: kube}, vmi.VirtualMachineInstances, v, plan)
		return err
	}
	require.NoError(t, do())
	require.NoError(t, do(), "one that is there is as good")
	stored, err := api.VirtualMachineInstanceMigrations(v.Namespace).Get(t.Context(), "m", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, v.Name, stored.Spec.VMIName)
	require.Equal(t, []string{"Normal SuccessfulCreate"}, reasons())
	fails = true
	err = do()
	require.ErrorContains(t, err, "create VirtualMachineInstanceMigration default/m")
	require.NotErrorAs(t, err, new(*Refusal), "the VMI waits for nothing")
	require.ElementsMatch(t, []string{"Normal SuccessfulCreate", "Warning FailedCreate"}, reasons())
}

func TestWhatIsSaidOfAnEvictionIsWrittenAndRemoved(t *testing.T) {
	t.Parallel()
	v := vmitest.New()
	v.Labels, v.Annotations = map[string]string{"old": "x", "kept": "x"}, map[string]string{vmi.EvictionSourceAnnotation: "descheduler", "kept": "x"}
	p := launcher(t)
	var writes []string
	cfg := fake.New(v).Config()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet {
				writes = append(writes, r.Method)
			}
			return next.RoundTrip(r)
		})
	})
	api, err := client.New(cfg)
	require.NoError(t, err)
	kube := kubefake.NewClientset(p)
	do := func(a scheduler.Action) *vmi.VirtualMachineInstance {
		now, err := api.VirtualMachineInstances(v.Namespace).Get(t.Context(), v.Name, metav1.GetOptions{})
		require.NoError(t, err)
		now, err = Execute(t.Context(), Executor{Client: api, Kube: kube}, vmi.VirtualMachineInstances, now, scheduler.Plan{Actions: []scheduler.Action{a}})
		require.NoError(t, err)
		return now
	}
	now := do(scheduler.ChangeLabels{Labels: map[string]string{"new": "y"}, Removed: []string{"old"}, Annotations: []string{vmi.EvictionSourceAnnotation}})
	require.Equal(t, map[string]string{"new": "y", "kept": "x"}, now.Labels)
	require.Equal(t, map[string]string{"kept": "x"}, now.Annotations)
	require.Equal(t, []string{http.MethodPatch}, writes, "in one write")

	for _, value := range []string{"true", ""} {
		do(scheduler.AnnotatePod{Name: p.Name, UID: p.UID, Key: vmi.EvictionInProgressAnnotation, Value: value})
		stored, err := kube.CoreV1().Pods(p.Namespace).Get(t.Context(), p.Name, metav1.GetOptions{})
		require.NoError(t, err)
		is, ok := stored.Annotations[vmi.EvictionInProgressAnnotation]
		require.Equal(t, value, is)
		require.Equal(t, value != "", ok)
	}
	do(scheduler.AnnotatePod{Name: "gone", UID: "gone", Key: vmi.EvictionInProgressAnnotation, Value: "true"})
	require.Len(t, writes, 1, "of the VMI nothing more is written")
}

func TestWhetherAnotherNodeHasTheProcessorOfTheGuest(t *testing.T) {
	t.Parallel()
	model := vmi.CPUMigrationLabelPrefix + "Skylake"
	for name, labelled := range map[string]string{"only its own": "n1", "another": "n2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, m := moving()
			m.Status.Phase = vmi.MigrationPhaseScheduling
			w, c := newWorld(t, v, m)
			n, err := w.kube.CoreV1().Nodes().Get(t.Context(), labelled, metav1.GetOptions{})
			require.NoError(t, err)
			n.Labels = map[string]string{model: "true"}
			_, err = w.kube.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
			require.NoError(t, err)
			target := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{model: "true"}}}
			target.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
			o := migration.Observed{Migration: m, VMI: v, Target: target}
			require.NoError(t, c.findTarget(t.Context(), &o))
			require.Equal(t, labelled == "n1", o.NoModel)
		})
	}
}
