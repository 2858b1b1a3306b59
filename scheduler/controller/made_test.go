package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// A decision by an old cache creates a pod once more. Its event is not written once more, also
// if the cache gets the pod while the API server answers.
func TestAPodThatIsCreatedTwiceHasOneEvent(t *testing.T) {
	t.Parallel()
	v := vmitest.New()
	c, err := client.New(fake.New(v).Config())
	require.NoError(t, err)
	kube := kubefake.NewClientset()
	e, err := newExecutor(Executor{Client: c, Kube: kube}, vmi.VirtualMachineInstances)
	require.NoError(t, err)
	p, err := pod.Render(v, pod.Config{Launcher: pod.Launcher{Image: "x"}})
	require.NoError(t, err)
	plan := scheduler.Plan{Actions: []scheduler.Action{
		scheduler.CreatePod{Pod: p}, scheduler.Emit{Finding: vmi.Finding{Reason: "SuccessfulCreate", Message: "made"}},
	}}
	_, err = e.act(t.Context(), v, plan)
	require.NoError(t, err)

	kube.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		e.made.seen(reconcile.Key(v), p.Name)
		return true, nil, apierrors.NewAlreadyExists(corev1.Resource("pods"), p.Name)
	})
	_, err = e.act(t.Context(), v, plan)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	l, err := kube.CoreV1().Events(v.Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, l.Items, 1)
}
