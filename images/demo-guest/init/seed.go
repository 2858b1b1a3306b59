package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"
)

// source is a data source of cloud-init: the volume label by which its disk is
// known, and how the disk is read.
type source struct {
	label string
	parse func(fs.FS) (seed, error)
}

// sources are those that this guest reads. The first that has a disk counts.
var sources = []source{{"cidata", parseSeed}, {"config-2", parseDrive}}

// seed is the content of a disk of cloud-init. The zero value is a guest without one.
type seed struct {
	found   bool
	meta    metaData
	user    userData
	network networkConfig
}

type metaData struct {
	InstanceID    string `json:"instance-id"`
	LocalHostname string `json:"local-hostname"`
	Hostname      string `json:"hostname"`
	// Keys are the SSH public keys for root.
	Keys []string `json:"public-keys"`
}

// writeKeys makes the SSH public keys those of root.
func (m metaData) writeKeys() error {
	if len(m.Keys) == 0 {
		return nil
	}
	return file{Path: "/root/.ssh/authorized_keys", Content: strings.Join(m.Keys, "\n") + "\n", Permissions: 0o600}.write()
}

// hostname is the name the seed gives to the guest; that of user-data comes first.
func (s seed) hostname() string {
	for _, name := range []string{s.user.FQDN, s.user.Hostname, s.meta.LocalHostname, s.meta.Hostname} {
		if name != "" {
			return name
		}
	}
	return ""
}

// readSeed finds the disk, mounts it for the time of reading, and parses it.
// What could be read is returned also with an error.
func readSeed(m *modules) (seed, error) {
	for _, from := range sources {
		if device, kind := findVolume(from.label); device != "" {
			return from.read(m, device, kind)
		}
	}
	return seed{}, nil
}

func (from source) read(m *modules, device, kind string) (seed, error) {
	const dir = "/run/seed"
	if err := mountVolume(m, device, kind, dir); err != nil {
		return seed{}, err
	}
	defer func() { _ = unix.Unmount(dir, 0) }()
	s, err := from.parse(os.DirFS(dir))
	if err == nil {
		say("cloud-init data of instance %q on %s", s.meta.InstanceID, device)
	}
	return s, err
}

// parseSeed reads the files of a NoCloud disk.
func parseSeed(disk fs.FS) (seed, error) {
	s := seed{found: true}
	read := func(name string) []byte {
		b, _ := fs.ReadFile(disk, name)
		return b
	}
	var errs []error
	if err := yaml.Unmarshal(read("meta-data"), &s.meta); err != nil {
		errs = append(errs, fmt.Errorf("meta-data: %w", err))
	}
	var err error
	if s.user, err = parseUserData(read("user-data")); err != nil {
		errs = append(errs, fmt.Errorf("user-data: %w", err))
	}
	if s.network, err = parseNetworkConfig(read("network-config")); err != nil {
		errs = append(errs, fmt.Errorf("network-config: %w", err))
	}
	return s, errors.Join(errs...)
}
