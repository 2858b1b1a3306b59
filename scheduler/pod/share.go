package pod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
)

// shareMemory is what the server of a file system asks for, in bytes: measured are 12
// MB resident when it is idle, and 1 kB for each file that the guest knows.
const shareMemory = 40 * mib

// filesystems are the volumes that the guest mounts as file systems, and whether they
// are disks too.
func filesystems(d *vmi.Devices) map[string]bool {
	all := map[string]bool{}
	for _, f := range d.Filesystems {
		all[f.Name] = slices.ContainsFunc(d.Disks, func(k vmi.Disk) bool { return k.Name == f.Name })
	}
	return all
}

// shares are the containers that serve file systems. They run as long as the compute
// container does and are started again when they end.
func shares(all []volume.Share, v *vmi.VirtualMachineInstance, c Config) []corev1.Container {
	var out []corev1.Container
	for _, s := range all {
		command := []string{launcherPath, "share", "--socket", s.Socket, "--folder", s.Mounts[0].MountPath}
		if s.ReadOnly {
			command = append(command, "--read-only")
		}
		out = append(out, corev1.Container{
			Name:                     s.Name,
			Image:                    c.image(v),
			ImagePullPolicy:          c.pullPolicy(),
			Command:                  command,
			RestartPolicy:            new(corev1.ContainerRestartPolicyAlways),
			SecurityContext:          containerSecurity(),
			VolumeMounts:             s.Mounts,
			Resources:                shareResources(&v.Spec.Domain),
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		})
	}
	return out
}

// shareResources are what the server of a file system asks for. It is limited only if
// the compute container is: the kernel counts a page of the guest's memory for the
// container that touches it first, which is the server for pages that it reads a file
// into, so its limit has room for all of them.
func shareResources(d *vmi.DomainSpec) corev1.ResourceRequirements {
	own := *resource.NewQuantity(shareMemory, resource.BinarySI)
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: own,
	}}
	_, limited := d.Resources.Limits[corev1.ResourceMemory]
	if !limited && !dedicated(d) {
		return r
	}
	most := d.GuestMemory().DeepCopy()
	most.Add(own)
	r.Limits = corev1.ResourceList{corev1.ResourceMemory: most}
	if _, ok := d.Resources.Limits[corev1.ResourceCPU]; ok || dedicated(d) {
		r.Limits[corev1.ResourceCPU] = resource.MustParse("500m")
	}
	if dedicated(d) { // requests are limits
		r.Requests = r.Limits.DeepCopy()
	}
	return r
}

func dedicated(d *vmi.DomainSpec) bool { return d.CPU != nil && d.CPU.DedicatedCPUPlacement }
