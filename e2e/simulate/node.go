package simulate

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// devices are what virt-handler offers of a node.
var devices = []corev1.ResourceName{"devices.kubevirt.io/kvm", "devices.kubevirt.io/tun", "devices.kubevirt.io/vhost-net"}

// node is the Node that a kubelet and virt-handler make, with room for all VMIs.
func node(name string) *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("10k"), corev1.ResourceMemory: resource.MustParse("100Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Ti"), corev1.ResourcePods: resource.MustParse("10k"),
	}
	for _, d := range devices {
		room[d] = resource.MustParse("10k")
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", vmi.SchedulableLabel: "true",
		}},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastTransitionTime: metav1.Now()}},
		},
	}
}

// handlerPod is the pod of virt-handler on the node.
func handlerPod(node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "virt-handler-" + node, Labels: map[string]string{vmi.AppLabel: "virt-handler"}},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: "virt-handler", AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "virt-handler", Image: "example/virt-handler:v1"}},
		},
	}
}
