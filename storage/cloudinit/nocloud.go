package cloudinit

import (
	"encoding/base64"
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
)

// NoCloudLabel is the label of the file system by which a guest finds the disk.
const NoCloudLabel = "cidata"

// MaxBytes is the largest size of user data, and of network data.
const MaxBytes = 2048

// File is a file on the disk.
type File struct {
	Name    string
	Content []byte
}

// NoCloud returns the files of the NoCloud data source for v: meta-data,
// user-data and, if there is network data, network-config. Its error joins all
// faults, which wrap [vmi.ErrInvalid].
func NoCloud(v *vmi.VirtualMachineInstance, c *vmi.CloudInitNoCloud) ([]File, error) {
	meta, err := yaml.Marshal(map[string]string{
		"instance-id":    v.Name + "." + v.Namespace,
		"local-hostname": v.Hostname(),
	})
	if err != nil {
		return nil, fmt.Errorf("write meta-data: %w", err)
	}
	user, userErr := data("user data", c.UserData, c.UserDataBase64)
	network, networkErr := data("network data", c.NetworkData, c.NetworkDataBase64)
	if err := errors.Join(userErr, networkErr); err != nil {
		return nil, err
	}
	// cloud-init ignores a disk without the file user-data, which may be empty.
	files := []File{{"meta-data", meta}, {"user-data", user}}
	if network != nil {
		files = append(files, File{"network-config", network})
	}
	return files, nil
}

// data is the content of plain or encoded. Nil: both are empty.
func data(what, plain, encoded string) ([]byte, error) {
	if plain != "" && encoded != "" {
		return nil, fmt.Errorf("%s is set twice, as text and in base64: %w", what, vmi.ErrInvalid)
	}
	var b []byte
	if plain != "" {
		b = []byte(plain)
	}
	if encoded != "" {
		var err error
		if b, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return nil, fmt.Errorf("%s is not base64 (%w): %w", what, err, vmi.ErrInvalid)
		}
	}
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("%s has %d bytes, more than %d: %w", what, len(b), MaxBytes, vmi.ErrInvalid)
	}
	return b, nil
}
