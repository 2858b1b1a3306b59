package simulate

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// Report writes what a handler writes when a guest runs or has ended: the phase, and whether
// the VMI is ready. The client has the rights of the handler of the VMI's node. A conflict says
// that v is not the newest.
func Report(ctx context.Context, c client.VirtualMachineInstances, v *vmi.VirtualMachineInstance, p vmi.Phase) error {
	changed := v.DeepCopy()
	now := metav1.Now()
	changed.Status.SetPhase(p, now)
	ready := vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionTrue}
	if p != vmi.PhaseRunning {
		ready.Status, ready.Reason = corev1.ConditionFalse, vmi.ReasonGuestNotRunning
	}
	changed.Status.SetCondition(ready, now)
	_, err := client.WriteStatus(ctx, c, v, changed)
	return err
}
