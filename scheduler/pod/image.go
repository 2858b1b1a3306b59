package pod

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/podvisor/podvisor/vmi"
)

// fullSuffix ends the name of the repository of the launcher's full image.
const fullSuffix = "-full"

// fullImage is the reference of the launcher's full image that belongs to the small
// one: that of the repository whose name ends in "-full", with the same tag. It is
// empty for a digest, which only one image has.
func fullImage(image string) string {
	if image == "" || strings.Contains(image, "@") {
		return ""
	}
	name, tag := image, ""
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		name, tag = image[:i], image[i:]
	}
	return name + fullSuffix + tag
}

// ImageOf is the launcher's image that the VMI would get if it were started now. Empty:
// none is known that has what it needs.
func (c Config) ImageOf(v *vmi.VirtualMachineInstance) string { return c.image(v) }

// image is the launcher's image that has what the VMI needs; see imageFault.
func (c Config) image(v *vmi.VirtualMachineInstance) string {
	if needsFull(&v.Spec.Domain) {
		return cmp.Or(c.FullImage, fullImage(c.Image))
	}
	return c.Image
}

// imageFault says why no image is known that has what the VMI needs. The installation has
// to name one: the VMI is not wrong.
func (c Config) imageFault(v *vmi.VirtualMachineInstance) error {
	if c.Image == "" || c.image(v) != "" {
		return nil
	}
	return fmt.Errorf("the VMI asks for UEFI firmware or a TPM, which the launcher's image %s does not have, and the full image is not known, since that one is named by its digest: "+
		"set LAUNCHER_FULL_IMAGE of virt-controller", c.Image)
}

// needsFull says whether a VMI needs programs or firmware that only the full image has.
func needsFull(d *vmi.DomainSpec) bool {
	return d.UEFI() != nil || d.Devices.TPM.On()
}
