package validate

import (
	"path"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// platform checks the architecture, the machine type and the firmware.
func platform(at *field.Path, s *vmi.VirtualMachineInstanceSpec, lim Limits) field.ErrorList {
	var l field.ErrorList
	arch := lim.architecture(s.Architecture)
	allowed := lim.machineTypes(arch)
	if len(allowed) == 0 {
		return append(l, field.Invalid(at.Child("architecture"), arch, "must be amd64, arm64 or s390x"))
	}
	if a, ok := s.NodeSelector[corev1.LabelArchStable]; ok && a != arch {
		l = append(l, field.Invalid(at.Child("nodeSelector").Key(corev1.LabelArchStable), a, "must be the VMI's architecture, "+arch+", or left out"))
	}
	if m := s.Domain.Machine; m != nil && m.Type != "" && !matches(allowed, m.Type) {
		l = append(l, field.Invalid(at.Child("domain", "machine", "type"), m.Type, "must match "+alternatives(allowed)))
	}
	if f := s.Domain.Firmware; arch == defaults.ARM64 && f != nil && f.Bootloader != nil {
		l = append(l, armBootloader(at.Child("domain", "firmware", "bootloader"), f.Bootloader)...)
	}
	return l
}

func matches(patterns []string, s string) bool {
	for _, p := range patterns {
		if ok, _ := path.Match(p, s); ok {
			return true
		}
	}
	return false
}

func armBootloader(at *field.Path, b *vmi.Bootloader) field.ErrorList {
	var l field.ErrorList
	if b.BIOS != nil {
		l = append(l, field.NotSupported(at.Child("bios"), "bios", []string{"efi"}))
	}
	if e := b.EFI; e != nil && e.SecureBoot != nil && *e.SecureBoot {
		l = append(l, field.Invalid(at.Child("efi", "secureBoot"), true, "guests of arm64 have no secure boot: set it to false, or leave it out"))
	}
	return l
}

var (
	serial = regexp.MustCompile(`^[A-Za-z0-9_.+-]*$`)
	uuid   = regexp.MustCompile(`^[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}$`)
)

const maxSerial = 256

func firmware(at *field.Path, d *vmi.DomainSpec, arch string) field.ErrorList {
	f := d.Firmware
	if f == nil {
		return nil
	}
	here := at.Child("firmware")
	l := serialNumber(here.Child("serial"), f.Serial)
	if f.UUID != "" && !uuid.MatchString(string(f.UUID)) {
		l = append(l, field.Invalid(here.Child("uuid"), f.UUID, "must be a UUID, such as 5d307ca9-b3ef-428c-8861-06e72d69f223"))
	}
	if b := f.Bootloader; b != nil {
		if b.BIOS != nil && b.EFI != nil {
			l = append(l, field.Invalid(here.Child("bootloader"), "bios and efi", "must be one of them: leave the other out"))
		}
		isTDX := d.LaunchSecurity != nil && d.LaunchSecurity.TDX != nil // which keeps the firmware's variables without SMM
		if arch != defaults.ARM64 && !isTDX && b.EFI != nil && enabled(b.EFI.SecureBoot) && !smm(d.Features) {
			l = append(l, field.Invalid(at, "efi", "secure boot, which is on unless firmware.bootloader.efi.secureBoot is false, needs features.smm.enabled: true"))
		}
	}
	if k := f.KernelBoot; k != nil {
		l = append(l, kernelBoot(here.Child("kernelBoot"), k)...)
	}
	return l
}

func smm(f *vmi.Features) bool { return f != nil && f.SMM != nil && enabled(f.SMM.Enabled) }

func serialNumber(at *field.Path, s string) field.ErrorList {
	if len(s) > maxSerial || !serial.MatchString(s) {
		return field.ErrorList{field.Invalid(at, s, "must have at most 256 of the characters A-Z a-z 0-9 _ . + -")}
	}
	return nil
}

func kernelBoot(at *field.Path, k *vmi.KernelBoot) field.ErrorList {
	var l field.ErrorList
	c, here := k.Container, at.Child("container")
	if c == nil {
		if k.KernelArgs != "" {
			l = append(l, field.Invalid(at.Child("kernelArgs"), k.KernelArgs, "needs a kernel, in container.kernelPath"))
		}
		return l
	}
	if c.Image == "" {
		l = append(l, field.Required(here.Child("image"), "name the container image with the kernel"))
	}
	if c.KernelPath == "" && c.InitrdPath == "" {
		l = append(l, field.Required(here, "must have kernelPath, initrdPath or both"))
	}
	if c.KernelPath == "" && c.InitrdPath != "" && k.KernelArgs != "" {
		l = append(l, field.Invalid(at.Child("kernelArgs"), k.KernelArgs, "needs container.kernelPath"))
	}
	l = append(l, imagePath(here.Child("kernelPath"), c.KernelPath)...)
	return append(l, imagePath(here.Child("initrdPath"), c.InitrdPath)...)
}

// imagePath checks a path in an image that others made: it must not lead
// out of the image by its own words.
func imagePath(at *field.Path, p string) field.ErrorList {
	switch {
	case p == "":
		return nil
	case path.Clean(p) == "/":
		return field.ErrorList{field.Invalid(at, p, "must be a file of the image, not its root")}
	case path.Join("/", p) != strings.TrimSuffix(p, "/"):
		return field.ErrorList{field.Invalid(at, p, "must be absolute, without .., . and double slashes")}
	}
	return nil
}
