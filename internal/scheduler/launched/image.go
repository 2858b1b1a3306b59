package launched

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// Image is the image of the launcher's container. Other containers may stand before it.
func Image(p *corev1.Pod) string {
	for _, c := range p.Spec.Containers {
		if c.Name == vmi.ComputeContainer {
			return c.Image
		}
	}
	return ""
}

// RunsIn is the image of the launcher that the VMI runs in, whose active pod is given. Empty:
// it is not known. Right after a migration the status still has that of the pod that the VMI
// has left.
func RunsIn(v *vmi.VirtualMachineInstance, active *corev1.Pod) string {
	switch m := v.Status.MigrationState; {
	case m == nil || !m.Completed || m.Failed:
		return v.Status.LauncherContainerImageVersion
	case active == nil:
		return ""
	}
	return Image(active)
}

// Outdated says whether the VMI runs with another launcher than the image that a start would
// give it now, as after an upgrade, and whether that is known: a launcher of which no image is
// written is not judged. The label [vmi.OutdatedLauncherLabel] follows it, by a write.
func Outdated(v *vmi.VirtualMachineInstance, active *corev1.Pod, now string) (is, known bool) {
	in := RunsIn(v, active)
	return in != now, in != "" && now != ""
}
