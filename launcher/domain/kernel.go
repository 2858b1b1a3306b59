package domain

import (
	"errors"
	"fmt"

	"github.com/podvisor/podvisor/vmi"
)

// KernelFiles are the files that a guest is started with in place of a boot loader, as
// they are in the pod.
type KernelFiles struct {
	// Kernel and Initrd are their paths. Empty: there is none.
	Kernel, Initrd string
}

// kernel adds the kernel that the firmware starts.
func kernel(b *Draft) error {
	c := b.Spec.BootContainer()
	if c == nil {
		return nil
	}
	const field = "spec.domain.firmware.kernelBoot.container"
	if c.KernelPath == "" {
		return fmt.Errorf("%s.initrdPath: an initrd needs a kernel, which disks do not give it: set kernelPath: %w", field, vmi.ErrInvalid)
	}
	found := b.Host.Kernel
	if found.Kernel == "" || found.Initrd == "" && c.InitrdPath != "" {
		return errors.New(field + ": the files of the image are not known")
	}
	b.Domain.OS.Kernel, b.Domain.OS.Initrd = found.Kernel, found.Initrd
	b.Domain.OS.Cmdline = b.Spec.Firmware.KernelBoot.KernelArgs
	return nil
}
