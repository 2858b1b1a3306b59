package pod

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
)

// podGrace is what the pod gets besides the guest's grace period. When that one is
// over, the launcher switches the guest off, before the kubelet kills the
// launcher.
const podGrace = 30 * time.Second

// launcherPath is the launcher's program in its image.
const launcherPath = "/usr/bin/virt-launcher"

// compute is the container that the VMI runs in.
func compute(v *vmi.VirtualMachineInstance, c Config, overhead resource.Quantity, storage volume.Part) corev1.Container {
	args := []string{
		"--name", v.Name,
		"--namespace", v.Namespace,
		"--uid", string(v.UID),
		"--grace-period", v.GracePeriod().String(),
	}
	if c.Emulation() {
		args = append(args, "--allow-emulation")
	}
	if _, ok := v.Annotations[vmi.FailFastAnnotation]; ok {
		args = append(args, "--fail-fast")
	}
	if c.requiresState(v) {
		args = append(args, "--require-state")
	}
	return corev1.Container{
		Name:                     vmi.ComputeContainer,
		Image:                    c.image(v),
		ImagePullPolicy:          c.pullPolicy(),
		Command:                  []string{launcherPath},
		Args:                     args,
		Env:                      environment(v, c),
		Ports:                    ports(v),
		Resources:                resources(v, c, overhead),
		VolumeMounts:             storage.Mounts,
		VolumeDevices:            storage.Devices,
		LivenessProbe:            liveness(v),
		ReadinessProbe:           readiness(v, c.Role),
		StartupProbe:             startup(v, c.Role),
		SecurityContext:          computeSecurity(),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		Stdin:                    true, // with the terminal, the guest's serial console for kubectl attach -it
		TTY:                      true,
	}
}

// ports are the ports that the interface on the pod network forwards to the
// guest. They open nothing; they let Services and probes name a port.
func ports(v *vmi.VirtualMachineInstance) []corev1.ContainerPort {
	var out []corev1.ContainerPort
	for _, i := range v.Spec.Domain.Devices.Interfaces {
		if !slices.ContainsFunc(v.Spec.Networks, func(n vmi.Network) bool { return n.Name == i.Name && n.Pod != nil }) {
			continue
		}
		for _, p := range i.Ports {
			out = append(out, corev1.ContainerPort{Name: p.Name, Protocol: corev1.Protocol(cmp.Or(p.Protocol, vmi.ProtocolTCP)), ContainerPort: p.Port})
		}
	}
	return out
}
