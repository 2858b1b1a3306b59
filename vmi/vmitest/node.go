package vmitest

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// NewNode makes a node that is ready for VMIs, with the labels and the devices that
// virt-handler gives to one with hardware virtualization, and with these labels more. A label
// with an empty value is taken away.
func NewNode(name string, labels map[string]string) *corev1.Node {
	n := &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: UID, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
			vmi.SchedulableLabel: "true",
		}},
	}
	maps.Copy(n.Labels, labels)
	maps.DeleteFunc(n.Labels, func(_, value string) bool { return value == "" })
	devices := resource.MustParse("1k")
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110"),
		vmi.KVMResource: devices, vmi.TunResource: devices, vmi.VhostNetResource: devices,
	}
	n.Status.Capacity = n.Status.Allocatable.DeepCopy()
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: began, LastTransitionTime: began}}
	return n
}
