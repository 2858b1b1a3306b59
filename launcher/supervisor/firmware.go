package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/podvisor/podvisor/internal/storage/image"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
)

// makeVariables makes the file with the variables of the VMI's UEFI firmware below the
// folder root, if it has one and the file is not there.
func makeVariables(s *vmi.VirtualMachineInstanceSpec, root string) error {
	u := domain.FirmwareOf(s)
	if u == nil {
		return nil
	}
	for _, file := range []string{u.Code, u.Template} {
		if err := inImage(file, "UEFI firmware"); err != nil {
			return err
		}
	}
	to := filepath.Join(root, u.Variables)
	if err := image.StateDir(filepath.Dir(to)); err != nil {
		return fmt.Errorf("make the variables of the firmware: %w", err)
	}
	if err := image.CopyOnce(u.Template, to); err != nil {
		return fmt.Errorf("make the variables of the firmware: %w", err)
	}
	return nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// inImage is the error of a file that the launcher's image does not have.
func inImage(file, what string) error {
	_, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("this image of virt-launcher has no %s (%s): it is in virt-launcher-full, which LAUNCHER_FULL_IMAGE of virt-controller names: %w", what, file, vmi.ErrInvalid)
	}
	return err
}

// findKernel finds the files that the VMI is started with in place of a boot loader.
func findKernel(d *vmi.DomainSpec, root string) (domain.KernelFiles, error) {
	var found domain.KernelFiles
	for _, i := range volume.KernelFiles(d.BootContainer(), root) {
		file, err := image.BootFile(i.Dir, i.File)
		if err != nil {
			return domain.KernelFiles{}, fmt.Errorf("kernelBoot: image %s: %w", i.Reference, err)
		}
		switch i.Role {
		case volume.Kernel:
			found.Kernel = file
		case volume.Initrd:
			found.Initrd = file
		}
	}
	return found, nil
}

// kernelStatus is what the files are identified by. Nil: there are none.
func kernelStatus(ctx context.Context, files domain.KernelFiles) (*vmi.KernelBootStatus, error) {
	info := func(file string) (*vmi.BootFileInfo, error) {
		if file == "" {
			return nil, nil
		}
		sum, err := image.Checksum(ctx, file)
		if err != nil {
			return nil, fmt.Errorf("kernelBoot: make the checksum of the file: %w", err)
		}
		return &vmi.BootFileInfo{Checksum: sum}, nil
	}
	if files.Kernel == "" {
		return nil, nil
	}
	kernel, err := info(files.Kernel)
	if err != nil {
		return nil, err
	}
	initrd, err := info(files.Initrd)
	if err != nil {
		return nil, err
	}
	return &vmi.KernelBootStatus{KernelInfo: kernel, InitrdInfo: initrd}, nil
}

// swtpm is the program that emulates a TPM.
const swtpm = "/usr/bin/swtpm"

// complete is the file that says that the state of a TPM is whole: a TPM whose making
// was interrupted has no certificates.
const complete = "complete"

// prepareTPM makes libvirt keep the state of a persistent TPM where it outlasts the
// domain, whose UUID the state does not depend on.
func (s *Supervisor) prepareTPM(d *vmi.DomainSpec, uuid string) error {
	if !d.Devices.TPM.On() {
		return nil
	}
	if err := inImage(swtpm, "TPM emulator"); err != nil {
		return err
	}
	if !d.Devices.TPM.Persists() {
		return nil
	}
	state := tpmState()
	if _, err := os.Lstat(filepath.Join(state, complete)); errors.Is(err, fs.ErrNotExist) {
		if err := os.RemoveAll(state); err != nil {
			return fmt.Errorf("remove the incomplete state of the TPM: %w", err)
		}
	}
	for _, dir := range []string{vmi.TPMDir, state} {
		if err := image.StateDir(dir); err != nil {
			return fmt.Errorf("make the state of the TPM: %w", err)
		}
	}
	return s.daemon.KeepTPM(uuid, state)
}

// tpmState is the folder of the state of the one TPM of a pod, in the folder that is a
// mount point and belongs to root.
func tpmState() string { return filepath.Join(vmi.TPMDir, "state") }

// completeTPM notes that the state of the TPM is whole.
func completeTPM(d *vmi.DomainSpec) error {
	if !d.Devices.TPM.Persists() {
		return nil
	}
	return os.WriteFile(filepath.Join(tpmState(), complete), nil, 0o600)
}
