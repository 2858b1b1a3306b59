package vmi_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
)

func Example() {
	manifest := `
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: hello}
spec:
  domain:
    cpu: {cores: 2}
    memory: {guest: 512Mi}
    devices: {}
`
	var v vmi.VirtualMachineInstance
	if err := yaml.UnmarshalStrict([]byte(manifest), &v); err != nil {
		fmt.Println(err)
		return
	}
	memory := v.Spec.Domain.GuestMemory()
	fmt.Println(v.Name, v.Spec.Domain.CPU.VCPUs(), memory.String(), v.GracePeriod())
	// Output: hello 2 512Mi 30s
}

func ExampleVirtualMachineInstanceStatus_SetCondition() {
	var s vmi.VirtualMachineInstanceStatus
	s.SetPhase(vmi.PhaseRunning, metav1.Now())
	s.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionTrue}, metav1.Now())
	fmt.Println(s.Phase, s.Condition(vmi.ConditionReady).Status)
	// Output: Running True
}
