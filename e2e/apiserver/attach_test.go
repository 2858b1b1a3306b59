package apiserver

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestAnAttachToAGuestNeedsAnInput(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	pods := world.kube.CoreV1().Pods(s.name)
	restricted := &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	for _, name := range []string{"virt-launcher-vm-x", "other"} {
		_, err := pods.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PodSpec{
				SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
				Containers:      []corev1.Container{{Name: "compute", Image: "example/c", SecurityContext: restricted}, {Name: "sidecar", Image: "example/c", SecurityContext: restricted}},
			},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	for _, tt := range []struct {
		name, pod string
		options   corev1.PodAttachOptions
		refused   bool
	}{
		{"without an input", "virt-launcher-vm-x", corev1.PodAttachOptions{Container: "compute", Stdout: true, TTY: true}, true},
		{"without an input or a container", "virt-launcher-vm-x", corev1.PodAttachOptions{Stdout: true}, true},
		{"with an input and a terminal", "virt-launcher-vm-x", corev1.PodAttachOptions{Container: "compute", Stdin: true, Stdout: true, TTY: true}, false},
		{"to a sidecar", "virt-launcher-vm-x", corev1.PodAttachOptions{Container: "sidecar", Stdout: true}, false},
		{"to another pod", "other", corev1.PodAttachOptions{Container: "compute", Stdout: true}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := world.kube.CoreV1().RESTClient().Post().Namespace(s.name).Resource("pods").Name(tt.pod).SubResource("attach").
				VersionedParams(&tt.options, scheme.ParameterCodec).Do(t.Context()).Error()
			require.Error(t, err, "the pod is on no node")
			require.Equal(t, tt.refused, apierrors.IsForbidden(err), "%v", err)
			if tt.refused {
				require.ErrorContains(t, err, "kubectl attach -it")
			}
		})
	}
}
