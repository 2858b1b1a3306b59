package supervisor

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// came is the file in the folders of a guest's state that says that the state came here with the
// guest, as a whole. It is there before the guest runs, and as long as the guest may have run.
const came = "came"

// persistent are the variables of the firmware that outlast the pod. Nil: there are none.
func persistent(s *vmi.VirtualMachineInstanceSpec) *domain.UEFI {
	if !s.Domain.UEFI().Persists() {
		return nil
	}
	return domain.FirmwareOf(s)
}

// variables are those of the guest's firmware, compressed. A guest that stands still does not
// change them. Nil: they do not outlast the pod.
func variables(s *vmi.VirtualMachineInstanceSpec) ([]byte, error) {
	u := persistent(s)
	if u == nil {
		return nil, nil
	}
	content, err := pack(u.Variables, math.MaxInt)
	if err != nil {
		return nil, fmt.Errorf("read the variables of the firmware: %w", err)
	}
	return content, nil
}

// receiveState makes the state of a guest that is about to run here whole, also after a crash of
// the node: QEMU writes the variables of the firmware only when it lets the guest run, and swtpm
// has written the state of the TPM.
func receiveState(s *vmi.VirtualMachineInstanceSpec, packed []byte) error {
	dirs := s.Domain.StateDirs()
	if len(dirs) == 0 {
		return nil
	}
	if u := persistent(s); u != nil {
		if err := writeVariables(u.Variables, packed); err != nil {
			return fmt.Errorf("write the variables of the firmware: %w", err)
		}
	}
	if err := completeTPM(&s.Domain); err != nil {
		return fmt.Errorf("note that the state of the TPM is whole: %w", err)
	}
	for _, dir := range dirs {
		if err := syncState(dir); err != nil {
			return err
		}
	}
	for _, dir := range dirs {
		if err := os.WriteFile(filepath.Join(dir, came), nil, 0o600); err != nil {
			return err
		}
		if err := syncFile(dir); err != nil {
			return err
		}
	}
	return nil
}

// writeVariables writes into the file, which QEMU has open.
func writeVariables(path string, packed []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return transport.Refusal(protocol.ReasonMalformed, "the variables of the firmware have not come: %v", err)
	}
	content, err := io.ReadAll(io.LimitReader(r, info.Size()+1))
	if err == nil && int64(len(content)) != info.Size() {
		err = transport.Refusal(protocol.ReasonMalformed, "the variables of the firmware have another size than the %d bytes here", info.Size())
	}
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	return err
}

// forgetState takes back that the state of the guest came here: the guest goes on elsewhere.
func forgetState() error {
	for _, dir := range []string{vmi.NVRAMDir, vmi.TPMDir} {
		err := os.Remove(filepath.Join(dir, came))
		if err == nil {
			err = syncFile(dir)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// syncState returns when what is in the folder is there after a crash of the node.
func syncState(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() && !e.Type().IsRegular() {
			return err
		}
		return syncFile(path)
	})
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// missingState is why the guest is not started: its state was to come with a migration, and is
// not here.
func missingState(d *vmi.DomainSpec) error {
	dirs := d.StateDirs()
	here := func(dir string) bool {
		_, err := os.Lstat(filepath.Join(dir, came))
		return err == nil
	}
	if len(dirs) == 0 || slices.ContainsFunc(dirs, here) {
		return nil
	}
	return transport.Refusal(string(protocol.StateMissing), "the claim for the state of firmware and TPM was made for a migration, and the guest did not come with it")
}
