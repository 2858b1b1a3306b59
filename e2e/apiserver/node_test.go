package apiserver

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// home is the namespace of virt-handler.
const home = "kubevirt"

// makeNode makes the node n1 with a virt-handler, both ready. Nothing runs there.
func makeNode(ctx context.Context) error {
	n, err := world.kube.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create node n1: %w", err)
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	if _, err := world.kube.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("make node n1 ready: %w", err)
	}
	p, err := world.kube.CoreV1().Pods(home).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "virt-handler-n1", Labels: map[string]string{vmi.AppLabel: "virt-handler"}},
		Spec: corev1.PodSpec{
			NodeName: "n1", ServiceAccountName: "virt-handler", AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "virt-handler", Image: "example/virt-handler:v1"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create pod virt-handler-n1: %w", err)
	}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if _, err := world.kube.CoreV1().Pods(home).UpdateStatus(ctx, p, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("make pod virt-handler-n1 ready: %w", err)
	}
	return nil
}
