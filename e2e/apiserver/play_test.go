package apiserver

import (
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// guest is a VMI that the API server accepts.
func guest(name string) *vmi.VirtualMachineInstance {
	v := vmitest.New(vmitest.WithName(name), vmitest.WithContainerDisk("root", "example/fedora:40"), vmitest.WithMasquerade("default", vmi.Port{Name: "http", Port: 80}))
	v.UID, v.Namespace = "", ""
	return v
}

func (s space) create(v *vmi.VirtualMachineInstance) *vmi.VirtualMachineInstance {
	s.t.Helper()
	v, err := s.vmis.Create(s.t.Context(), v, metav1.CreateOptions{})
	require.NoError(s.t, err)
	return v
}

func (s space) delete(name string) {
	s.t.Helper()
	require.NoError(s.t, s.vmis.Delete(s.t.Context(), name, metav1.DeleteOptions{}))
}

// pod waits for the VMI's pod.
func (s space) pod(v *vmi.VirtualMachineInstance) *corev1.Pod {
	s.t.Helper()
	var p *corev1.Pod
	eventually(s.t, func() (err error) {
		p, err = s.pods.Get(s.t.Context(), pod.Name(v), metav1.GetOptions{})
		return err
	})
	return p
}

// bind is what the scheduler does.
func (s space) bind(p *corev1.Pod, node string) {
	s.t.Helper()
	require.NoError(s.t, s.pods.Bind(s.t.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{}))
}

// status writes the status of the pod, as the kubelet and the scheduler do.
func (s space) status(p *corev1.Pod, change func(*corev1.PodStatus)) {
	s.t.Helper()
	require.NoError(s.t, retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the controller writes too
		now, err := s.pods.Get(s.t.Context(), p.Name, metav1.GetOptions{})
		if err == nil {
			change(&now.Status)
			_, err = s.pods.UpdateStatus(s.t.Context(), now, metav1.UpdateOptions{})
		}
		return err
	}))
}

func compute(phase corev1.PodPhase, state corev1.ContainerState) func(*corev1.PodStatus) {
	return func(s *corev1.PodStatus) {
		s.Phase = phase
		if state.Running != nil {
			s.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		s.ContainerStatuses = []corev1.ContainerStatus{{Name: vmi.ComputeContainer, Image: "podvisor/virt-launcher:v1", State: state}}
	}
}

var running = compute(corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}})

func waiting(reason, message string) func(*corev1.PodStatus) {
	return compute(corev1.PodPending, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}})
}

func exited(code int32, at metav1.Time, message string) func(*corev1.PodStatus) {
	phase := corev1.PodFailed
	if code == 0 {
		phase = corev1.PodSucceeded
	}
	return compute(phase, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: message, FinishedAt: at}})
}

// vanish removes the pod at once, as the kubelet does when everything in it has ended, and
// as a user does by force.
func (s space) vanish(p *corev1.Pod) {
	s.t.Helper()
	require.NoError(s.t, s.pods.Delete(s.t.Context(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
}

// report is what the handler of the node writes.
func (s space) report(v *vmi.VirtualMachineInstance, node string, change func(*vmi.VirtualMachineInstanceStatus)) error {
	c, err := client.New(asHandler(node))
	require.NoError(s.t, err)
	changed := v.DeepCopy()
	change(&changed.Status)
	_, err = client.WriteStatus(s.t.Context(), c.VirtualMachineInstances(s.name), v, changed)
	return err
}

func phase(p vmi.Phase) func(*vmi.VirtualMachineInstanceStatus) {
	return func(s *vmi.VirtualMachineInstanceStatus) { s.SetPhase(p, metav1.Now()) }
}

// awaitRemoved waits until the VMI says that its pod was removed.
func (s space) awaitRemoved(name string) *vmi.VirtualMachineInstance {
	s.t.Helper()
	var v *vmi.VirtualMachineInstance
	eventually(s.t, func() (err error) {
		v, err = s.vmis.Get(s.t.Context(), name, metav1.GetOptions{})
		if err != nil && !errors.Is(err, vmi.ErrUnreadable) {
			return err
		}
		if !v.Status.PodRemoved() {
			return fmt.Errorf("%s is %s: %+v", name, v.Status.Phase, v.Status.Conditions)
		}
		return nil
	})
	return v
}

// nothingLeft reports, as the handler of n1 does, that nothing of the VMI's pod is left
// there, which was removed.
func (s space) nothingLeft(name string) {
	s.t.Helper()
	err := s.report(s.awaitRemoved(name), "n1", func(st *vmi.VirtualMachineInstanceStatus) {
		st.End(vmi.PhaseFailed, "PodGone", vmi.Finding{Reason: vmi.ReasonGuestNotRunning, Message: "nothing of it is left"}, metav1.Now())
	})
	if !errors.Is(err, vmi.ErrUnreadable) { // then it is the answer that cannot be decoded
		require.NoError(s.t, err)
	}
}

// start brings a VMI to Running on n1.
func (s space) start(name string, change ...vmitest.Option) *vmi.VirtualMachineInstance {
	s.t.Helper()
	v := guest(name)
	for _, f := range change {
		f(v)
	}
	v = s.create(v)
	p := s.pod(v)
	s.bind(p, "n1")
	s.status(p, running)
	v = s.awaitPhase(name, vmi.PhaseScheduled)
	require.NoError(s.t, s.report(v, "n1", phase(vmi.PhaseRunning)))
	return s.awaitPhase(name, vmi.PhaseRunning)
}

// events are the VMI's events, as "Warning FailedCreate ×1".
func (s space) events(v *vmi.VirtualMachineInstance) []string {
	s.t.Helper()
	l, err := world.kube.CoreV1().Events(s.name).List(s.t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(v.UID)})
	require.NoError(s.t, err)
	var out []string
	for _, e := range l.Items {
		out = append(out, fmt.Sprintf("%s %s ×%d", e.Type, e.Reason, e.Count))
	}
	return out
}

// awaitEvents waits for exactly these events.
func (s space) awaitEvents(v *vmi.VirtualMachineInstance, want ...string) {
	s.t.Helper()
	eventually(s.t, func() error {
		if got := s.events(v); fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("events are %q, not %q", got, want)
		}
		return nil
	})
}
