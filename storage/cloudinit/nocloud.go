package cloudinit

import (
	"encoding/base64"
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
)

// NoCloudLabel is the name of the file system that a guest looks for.
const NoCloudLabel = "cidata"

// MaxBytes is the size that user data and network data may have each.
const MaxBytes = 2048

// File is a file on the disk.
type File struct {
	Name    string
	Content []byte
}

// NoCloud returns the files of the NoCloud data source for machine v:
// meta-data, user-data and, if there is network data, network-config. Its
// error joins all faults, which wrap [vmi.ErrInvalid].
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
	// cloud-init passes over a disk without user-data, even an empty one.
	files := []File{{"meta-data", meta}, {"user-data", user}}
	if network != nil {
		files = append(files, File{"network-config", network})
	}
	return files, nil
}

// data is what plain or encoded says. Nil: neither says anything.
func data(what, plain, encoded string) ([]byte, error) {
	if plain != "" && encoded != "" {
		return nil, fmt.Errorf("the %s is given twice, plain and in base64: %w", what, vmi.ErrInvalid)
	}
	var b []byte
	if plain != "" {
		b = []byte(plain)
	}
	if encoded != "" {
		var err error
		if b, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return nil, fmt.Errorf("the %s is not base64 (%w): %w", what, err, vmi.ErrInvalid)
		}
	}
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("the %s has %d bytes and at most %d are allowed: %w", what, len(b), MaxBytes, vmi.ErrInvalid)
	}
	return b, nil
}
