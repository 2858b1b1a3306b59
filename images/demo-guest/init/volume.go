package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// mountVolume mounts a file system for reading.
func mountVolume(m *modules, device, kind, dir string) error {
	if err := m.load(kind); err != nil {
		return err
	}
	data := ""
	if kind == "vfat" {
		// The default of the kernel asks for a charset module of its own.
		data = "iocharset=ascii"
		if err := errors.Join(m.load("nls_cp437"), m.load("nls_ascii")); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(device, dir, map[string]string{"isofs": "iso9660", "vfat": "vfat"}[kind], unix.MS_RDONLY, data); err != nil {
		return fmt.Errorf("mount %s: %w", device, err)
	}
	return nil
}

// findVolume returns the block device with the label and the module of its file
// system.
func findVolume(wanted string) (device, kind string) {
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
		if label, kind := volumeLabel(head[:n]); strings.EqualFold(label, wanted) {
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
