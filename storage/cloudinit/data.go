package cloudinit

import (
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/podvisor/podvisor/vmi"
)

// The labels of the file systems by which cloud-init finds its data.
const (
	// ConfigDriveLabel is the label of the file system by which a guest finds a
	// ConfigDrive disk.
	ConfigDriveLabel = "config-2"
	// NoCloudLabel is the label of the file system by which a guest finds a NoCloud
	// disk.
	NoCloudLabel = "cidata"
)

// MaxBytes is the largest size of user data, and of network data, in the spec.
// What is in a Secret may be as large as a Secret.
const MaxBytes = 2048

// File is a file on the disk.
type File struct {
	// Name is the path from the root of the disk, without a leading slash.
	Name    string
	Content []byte
}

// Secrets is the data that the spec has in Secrets. Nil: the spec names no Secret
// for it.
type Secrets struct {
	UserData, NetworkData []byte
	// Keys are the SSH public keys for the default user of the guest, sorted.
	Keys []string
}

// form is data in the forms that the spec has for it.
type form struct {
	what, plain, encoded string
	secret               []byte
}

// read returns the data. Nil: there is none.
func (f form) read() ([]byte, error) {
	forms := 0
	for _, set := range []bool{f.plain != "", f.encoded != "", f.secret != nil} {
		if set {
			forms++
		}
	}
	switch {
	case forms > 1:
		return nil, fmt.Errorf("%s is set %d times; it is text, base64 or in a Secret: %w", f.what, forms, vmi.ErrInvalid)
	case f.secret != nil:
		return f.secret, nil
	case forms == 0:
		return nil, nil
	}
	b := []byte(f.plain)
	if f.encoded != "" {
		var err error
		if b, err = base64.StdEncoding.DecodeString(f.encoded); err != nil {
			return nil, fmt.Errorf("%s is not base64 (%w): %w", f.what, err, vmi.ErrInvalid)
		}
	}
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("%s has %d bytes, more than %d: %w", f.what, len(b), MaxBytes, vmi.ErrInvalid)
	}
	return b, nil
}

// both reads user data and network data.
func both(user, network form) (u, n []byte, err error) {
	user.what, network.what = "user data", "network data"
	u, userErr := user.read()
	n, networkErr := network.read()
	return u, n, errors.Join(userErr, networkErr)
}
