package pod

import (
	"cmp"
	"strings"

	"github.com/podvisor/podvisor/vmi"
)

// fullSuffix ends the name of the repository of the launcher's full image.
const fullSuffix = "-full"

// FullImage is the reference of the launcher's full image that belongs to the small
// one: that of the repository whose name ends in "-full", with the same tag. It is
// empty for a digest, which only one image has.
func FullImage(image string) string {
	if image == "" || strings.Contains(image, "@") {
		return ""
	}
	name, tag := image, ""
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		name, tag = image[:i], image[i:]
	}
	return name + fullSuffix + tag
}

// ImageOf is the launcher's image that the VMI would get if it were started now.
func (c Config) ImageOf(v *vmi.VirtualMachineInstance) string { return c.image(v) }

// image is the launcher's image that has what the VMI needs.
func (c Config) image(v *vmi.VirtualMachineInstance) string {
	if needsFull(&v.Spec.Domain) {
		return cmp.Or(c.FullImage, FullImage(c.Image), c.Image)
	}
	return c.Image
}

// needsFull says whether a VMI needs programs or firmware that only the full image has.
func needsFull(d *vmi.DomainSpec) bool {
	return d.UEFI() != nil || d.Devices.TPM.On()
}
