package controller

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// loses loses the answer to the next write.
type loses struct {
	http.RoundTripper
	next bool
}

func (l *loses) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.RoundTripper.RoundTrip(r)
	if r.Method == http.MethodGet || !l.next || err != nil {
		return answer, err
	}
	l.next = false
	_ = answer.Body.Close()
	return nil, io.ErrUnexpectedEOF
}

// losesPods loses the answer to the next write of a pod.
func losesPods(kube *kubefake.Clientset) {
	lost := false
	kube.PrependReactor("*", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if lost || a.GetVerb() != "create" && a.GetVerb() != "delete" {
			return false, nil, nil
		}
		lost = true
		_, _, err := clienttesting.ObjectReaction(kube.Tracker())(a)
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return true, nil, err
	})
}

func TestTheEventOfAWriteWhoseAnswerIsLostIsEmittedOnce(t *testing.T) {
	t.Parallel()
	v := vmitest.New()
	p, err := pod.Render(v, pod.Config{Launcher: pod.Launcher{Image: "x"}})
	require.NoError(t, err)
	there := p.DeepCopy()
	there.Name, there.UID = "there", "pod-uid"
	running := v.DeepCopy()
	running.Status.SetPhase(vmi.PhaseRunning, metav1.Now())
	owner := vmitest.NewVM(vmi.RunAlways)
	owned := vmitest.New(vmitest.WithName("owned"))
	owned.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, vmi.VirtualMachines.GroupVersionKind)}
	for name, tt := range map[string]struct {
		of     vmi.Object
		action func(t *testing.T, c *client.Client) scheduler.Action
	}{
		"a pod is created": {v, func(*testing.T, *client.Client) scheduler.Action { return scheduler.CreatePod{Pod: p} }},
		"a pod is deleted": {v, func(*testing.T, *client.Client) scheduler.Action {
			return scheduler.DeletePod{Name: there.Name, UID: there.UID}
		}},
		"a status is written": {v, func(*testing.T, *client.Client) scheduler.Action {
			return scheduler.WriteStatus[*vmi.VirtualMachineInstance]{Object: running}
		}},
		"the last finalizer is removed": {v, func(t *testing.T, c *client.Client) scheduler.Action {
			require.NoError(t, c.VirtualMachineInstances(v.Namespace).Delete(t.Context(), v.Name, metav1.DeleteOptions{}))
			return scheduler.RemoveFinalizer{Finalizer: vmi.Finalizer}
		}},
		"a VMI is created": {owner, func(*testing.T, *client.Client) scheduler.Action { return scheduler.CreateInstance{Instance: owned} }},
		"a VMI is deleted": {owner, func(t *testing.T, c *client.Client) scheduler.Action {
			is, err := c.VirtualMachineInstances(v.Namespace).Get(t.Context(), v.Name, metav1.GetOptions{})
			require.NoError(t, err)
			return scheduler.DeleteInstance{Instance: is}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			held := v.DeepCopy()
			held.Finalizers = []string{vmi.Finalizer}
			l := &loses{}
			cfg := fake.New(held, owner).Config()
			cfg.Wrap(func(r http.RoundTripper) http.RoundTripper { l.RoundTripper = r; return l })
			c, err := client.New(cfg)
			require.NoError(t, err)
			kube := kubefake.NewClientset(there.DeepCopy())
			do := tt.action(t, c)
			l.next = true
			losesPods(kube)
			plan := scheduler.Plan{Actions: []scheduler.Action{do, scheduler.Emit{Finding: vmi.Finding{Reason: "Done", Message: "done"}}}}
			switch o := tt.of.(type) {
			case *vmi.VirtualMachine:
				err = acted(t, c, kube, vmi.VirtualMachines, o, plan)
			case *vmi.VirtualMachineInstance:
				o, err = c.VirtualMachineInstances(v.Namespace).Get(t.Context(), v.Name, metav1.GetOptions{})
				require.NoError(t, err)
				err = acted(t, c, kube, vmi.VirtualMachineInstances, o, plan)
			}
			require.NoError(t, err)
			require.Equal(t, []string{"Done"}, reasons(t, kube))
		})
	}
}

func acted[T vmi.Object, L runtime.Object](t *testing.T, c *client.Client, kube kubernetes.Interface, kind vmi.DefinitionOf[T, L], o T, p scheduler.Plan) error {
	t.Helper()
	e, err := newExecutor(Executor{Client: c, Kube: kube}, kind)
	require.NoError(t, err)
	_, err = e.act(t.Context(), o, p)
	return err
}
