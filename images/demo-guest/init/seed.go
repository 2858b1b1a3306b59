package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"
)

// seedLabel is the volume label by which a NoCloud disk is known.
const seedLabel = "cidata"

// seed is what a NoCloud disk said. The zero value is a machine without one.
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
}

// hostname is the name the seed gives to the machine; user-data has the last word.
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
	device, kind := findSeed()
	if device == "" {
		return seed{}, nil
	}
	if err := m.load(kind); err != nil {
		return seed{}, err
	}
	data := ""
	if kind == "vfat" {
		// The default of the kernel asks for a charset module of its own.
		data = "iocharset=ascii"
		if err := errors.Join(m.load("nls_cp437"), m.load("nls_ascii")); err != nil {
			return seed{}, err
		}
	}
	const dir = "/run/seed"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return seed{}, err
	}
	if err := unix.Mount(device, dir, map[string]string{"isofs": "iso9660", "vfat": "vfat"}[kind], unix.MS_RDONLY, data); err != nil {
		return seed{}, fmt.Errorf("mount %s: %w", device, err)
	}
	defer func() { _ = unix.Unmount(dir, 0) }()
	s, err := parseSeed(os.DirFS(dir))
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

// findSeed returns the block device with the seed and the module of its file
// system.
func findSeed() (device, kind string) {
	devices, _ := filepath.Glob("/sys/class/block/*")
	for _, d := range devices {
		name := filepath.Base(d)
		if strings.HasPrefix(name, "ram") || strings.HasPrefix(name, "loop") {
			continue
		}
		f, err := os.Open("/dev/" + name)
		if err != nil {
			continue
		}
		head := make([]byte, 32768+2048)
		n, _ := f.ReadAt(head, 0)
		f.Close()
		if label, kind := volumeLabel(head[:n]); strings.EqualFold(label, seedLabel) {
			return "/dev/" + name, kind
		}
	}
	return "", ""
}

// volumeLabel reads the label out of the beginning of an ISO 9660 or FAT file
// system.
func volumeLabel(head []byte) (label, kind string) {
	field := func(off, n int) string {
		if len(head) < off+n {
			return ""
		}
		return string(bytes.TrimRight(head[off:off+n], " \x00"))
	}
	switch {
	case field(32769, 5) == "CD001":
		return field(32808, 32), "isofs"
	case field(82, 5) == "FAT32":
		return field(71, 11), "vfat"
	case strings.HasPrefix(field(54, 5), "FAT"):
		return field(43, 11), "vfat"
	}
	return "", ""
}
