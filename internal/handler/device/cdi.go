package device

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/podvisor/podvisor/vmi"
)

const (
	// cdiKind is the kind of all our CDI devices.
	cdiKind = "devices.kubevirt.io/vm"
	// cdiFile is the file of their specification.
	cdiFile = "devices.kubevirt.io-vm.json"
	// cdiMode is the mode of the file.
	cdiMode os.FileMode = 0o644
	// cdiVersion is the oldest version of CDI that knows all that is used.
	cdiVersion = "0.6.0"
)

// cdiName is the name under which the container runtime knows a device.
func (d Device) cdiName() string { return cdiKind + "=" + d.Name }

// The part of a CDI specification that is used.
type (
	cdiSpec struct {
		Version string      `json:"cdiVersion"`
		Kind    string      `json:"kind"`
		Devices []cdiDevice `json:"devices"`
	}
	cdiDevice struct {
		Name  string   `json:"name"`
		Edits cdiEdits `json:"containerEdits"`
	}
	cdiEdits struct {
		Nodes []cdiNode `json:"deviceNodes"`
	}
	cdiNode struct {
		Path        string      `json:"path"`
		HostPath    string      `json:"hostPath"`
		Type        string      `json:"type"`
		Major       uint32      `json:"major"`
		Minor       uint32      `json:"minor"`
		FileMode    os.FileMode `json:"fileMode"`
		Permissions string      `json:"permissions"`
		UID         uint32      `json:"uid"`
		GID         uint32      `json:"gid"`
	}
)

// CDI is the specification that makes the devices those of the launcher's user.
func CDI(devices []Device) ([]byte, error) {
	s := cdiSpec{Version: cdiVersion, Kind: cdiKind}
	for _, d := range devices {
		s.Devices = append(s.Devices, cdiDevice{d.Name, cdiEdits{[]cdiNode{{
			Path: d.Path, HostPath: d.Path, Type: "c", Major: d.Major, Minor: d.Minor,
			FileMode: 0o660, Permissions: "rw", UID: vmi.RuntimeUID, GID: vmi.RuntimeUID,
		}}}})
	}
	b, err := json.MarshalIndent(s, "", "  ")
	return append(b, '\n'), err
}

// cdiIsWritten says that the file of the specification is there with the content, as
// this package writes it. A link is not followed.
func cdiIsWritten(dir string, content []byte) bool {
	path := filepath.Join(dir, cdiFile)
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != cdiMode || info.Size() != int64(len(content)) {
		return false
	}
	got, err := os.ReadFile(path)
	return err == nil && bytes.Equal(got, content)
}

// writeCDI writes the content of the specification to the folder that the container
// runtime reads, at once: the runtime may read at any time. What has the name of the
// file is replaced, not opened, so a link is not followed; a folder that is not empty
// is left and an error.
func writeCDI(dir string, content []byte) error {
	path := filepath.Join(dir, cdiFile)
	// Not named .json, so that the runtime does not take it for one.
	f, err := os.CreateTemp(dir, cdiFile+".*")
	if err != nil {
		return fmt.Errorf("write the CDI specification: %w", err)
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(cdiMode), f.Close())
	if info, found := os.Lstat(path); err == nil && found == nil && info.IsDir() {
		err = os.Remove(path)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write the CDI specification: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// removeCDI removes the specification, and what a writer that was killed left of
// one.
func removeCDI(dir string) error {
	err := os.Remove(filepath.Join(dir, cdiFile))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err = errors.Join(err, removeUnfinished(dir)); err != nil {
		return fmt.Errorf("remove the CDI specification: %w", err)
	}
	return nil
}

// removeUnfinished removes what writers that were killed left.
func removeUnfinished(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, cdiFile+".*"))
	for _, f := range left {
		if e := os.Remove(f); !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}
