package apiserver

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
)

// With another status a thief of the token would lead the traffic of Services elsewhere.
func TestAttackTheTokenOfTheControllerWritesNothingButTheGateOfPods(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	stop := s.control()
	v := s.start("vm")
	launcher := s.pod(v)
	eventually(t, func() error { return s.gateIs(launcher.Name, corev1.ConditionTrue) })
	stop()
	users := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.PodSpec{
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: vmi.PodConditionUnpaused}},
			Containers: []corev1.Container{{Name: "web", Image: "example/web", SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), RunAsNonRoot: new(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			}}},
		},
	}
	users, err := s.pods.Create(t.Context(), users, metav1.CreateOptions{})
	require.NoError(t, err)

	kube := tokenOf(t, "virt-controller")
	patchAll := func(pod, change string) error {
		_, err := kube.CoreV1().Pods(s.name).Patch(t.Context(), pod, types.StrategicMergePatchType, []byte(change), metav1.PatchOptions{}, "status")
		return err
	}
	patch := func(pod, status string) error { return patchAll(pod, `{"status":`+status+`}`) }
	const gate = `{"conditions":[{"type":"kubevirt.io/virtual-machine-unpaused","status":"False"}]}`
	require.NoError(t, patch(launcher.Name, gate))
	evicted := func(value string) string {
		return `{"metadata":{"annotations":{"descheduler.alpha.kubernetes.io/eviction-in-progress":` + value + `}}}`
	}
	for _, value := range []string{`"true"`, "null"} {
		require.NoError(t, patchAll(launcher.Name, evicted(value)))
		p, err := s.pods.Get(t.Context(), launcher.Name, metav1.GetOptions{})
		require.NoError(t, err)
		_, is := p.Annotations[vmi.EvictionInProgressAnnotation]
		require.Equal(t, value != "null", is)
	}
	for what, try := range map[string]error{
		"the gate of a user's pod":       patch(users.Name, gate),
		"the address":                    patch(launcher.Name, `{"podIP":"10.96.0.1","podIPs":[{"ip":"10.96.0.1"}]}`),
		"the phase":                      patch(launcher.Name, `{"phase":"Failed"}`),
		"whether it is ready":            patch(launcher.Name, `{"conditions":[{"type":"Ready","status":"Unknown"}]}`),
		"another gate":                   patch(launcher.Name, `{"conditions":[{"type":"example.com/mesh","status":"True"}]}`),
		"the conditions of the node":     patch(launcher.Name, `{"conditions":[{"$patch":"replace"},{"type":"kubevirt.io/virtual-machine-unpaused","status":"True"}]}`),
		"the state of its containers":    patch(launcher.Name, `{"containerStatuses":[{"name":"compute","ready":true,"image":"x","imageID":"y","restartCount":3}]}`),
		"the gate and the address":       patch(launcher.Name, `{"podIP":"10.96.0.1","conditions":[{"type":"kubevirt.io/virtual-machine-unpaused","status":"True"}]}`),
		"the reason that it shows":       patch(launcher.Name, `{"reason":"Evicted"}`),
		"a label":                        patchAll(launcher.Name, `{"metadata":{"labels":{"app":"web"}}}`),
		"fewer labels":                   patchAll(launcher.Name, `{"metadata":{"labels":{"kubevirt.io":null,"kubevirt.io/created-by":null}}}`),
		"an annotation":                  patchAll(launcher.Name, `{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"x"}}}`),
		"another text of the annotation": patchAll(launcher.Name, evicted(`"x"`)),
		"a user's pod that is to leave":  patchAll(users.Name, evicted(`"true"`)),
		"a finalizer":                    patchAll(launcher.Name, `{"metadata":{"finalizers":["example.com/hold"]}}`),
		"the node's address":             patch(launcher.Name, `{"hostIP":"10.0.0.1","hostIPs":[{"ip":"10.0.0.1"}]}`),
	} {
		require.True(t, apierrors.IsForbidden(try), "%s: %v", what, try)
	}
}

// gateIs says what the readiness gate of the pod is, if it is not that.
func (s space) gateIs(pod string, want corev1.ConditionStatus) error {
	p, err := s.pods.Get(s.t.Context(), pod, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return gateOf(p, want)
}

// gateOf says what the gate of the pod is, if it is not that.
func gateOf(p *corev1.Pod, want corev1.ConditionStatus) error {
	for _, c := range p.Status.Conditions {
		if c.Type == vmi.PodConditionUnpaused && c.Status == want {
			return nil
		}
	}
	return fmt.Errorf("the gate of pod %s is not %s: %v", p.Name, want, p.Status.Conditions)
}

// awaitGates waits until the gates of all pods of the namespace are open. virt-controller
// opens them after it has written that a VMI is scheduled, and maybe after its guest runs.
func (s space) awaitGates() {
	s.t.Helper()
	eventually(s.t, func() error {
		l, err := s.pods.List(s.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range l.Items {
			err = errors.Join(err, gateOf(&l.Items[i], corev1.ConditionTrue))
		}
		return err
	})
}

func TestThePodOfAPausedVMIHasItsGateClosedByOneWrite(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	v := s.start("vm")
	p := s.pod(v)
	eventually(t, func() error { return s.gateIs(p.Name, corev1.ConditionTrue) })
	before := len(s.writes.all())
	report := func(change func(*vmi.VirtualMachineInstanceStatus), gate corev1.ConditionStatus) {
		v, err := s.vmis.Get(t.Context(), "vm", metav1.GetOptions{})
		require.NoError(t, err)
		require.NoError(t, s.report(v, "n1", change))
		eventually(t, func() error { return s.gateIs(p.Name, gate) })
	}
	report(func(s *vmi.VirtualMachineInstanceStatus) {
		s.SetCondition(vmi.Condition{Type: vmi.ConditionPaused, Status: corev1.ConditionTrue, Reason: vmi.ReasonPausedByUser}, metav1.Now())
	}, corev1.ConditionFalse)
	report(func(s *vmi.VirtualMachineInstanceStatus) { s.RemoveCondition(vmi.ConditionPaused) }, corev1.ConditionTrue)
	require.Equal(t, []string{"PATCH pods/status 200", "PATCH pods/status 200"}, s.writes.all()[before:])
}
