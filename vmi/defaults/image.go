package defaults

import (
	"strings"

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
func pullPolicy(image string) vmi.PullPolicy {
	name := image[strings.LastIndex(image, "/")+1:]
	if strings.Contains(name, "@") {
		return vmi.PullIfNotPresent
	}
	if _, tag, ok := strings.Cut(name, ":"); !ok || tag == "latest" {
		return vmi.PullAlways
	}
	return vmi.PullIfNotPresent
}
