package defaults

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// images decides when container images are pulled.
func images(s *vmi.VirtualMachineInstanceSpec, p Profile) {
	for i := range s.Volumes {
		c := s.Volumes[i].ContainerDisk
		switch {
		case c == nil || c.ImagePullPolicy != "":
		case p.ImagePullPolicy != "":
			c.ImagePullPolicy = p.ImagePullPolicy
		default:
			c.ImagePullPolicy = pullPolicy(c.Image)
		}
	}
}

// pullPolicy is Always for an image whose reference may mean another image
// tomorrow: one with the tag latest or none.
func pullPolicy(image string) corev1.PullPolicy {
	name := image[strings.LastIndex(image, "/")+1:]
	if strings.Contains(name, "@") {
		return corev1.PullIfNotPresent
	}
	if _, tag, ok := strings.Cut(name, ":"); !ok || tag == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}
