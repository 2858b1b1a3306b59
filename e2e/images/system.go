package images

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// System declares a bootable disk with an installed Debian.
type System struct {
	// Path of the disk in the image.
	Path string `json:"path"`
	// SizeMiB is the size of the root file system. Required.
	SizeMiB int `json:"sizeMiB"`
	// Exclude are files of packages that are not installed, as patterns of dpkg.
	Exclude []string `json:"exclude"`
	// Modules of the kernel are in the initial RAM disk, with those that they need.
	Modules []string `json:"modules"`
	// CommandLine of the kernel.
	CommandLine string `json:"commandLine"`
	// Enable and Mask name units of systemd.
	Enable []string `json:"enable"`
	Mask   []string `json:"mask"`
	// Files are written into the system when it is installed.
	Files []File `json:"files"`
}

const (
	sectorBytes = 512
	// bootMiB is the size of the partition with the kernel.
	bootMiB = 40
)

// system makes the file system of a container disk with an installed Debian.
func (c *cache) system(ctx context.Context, l List) (tree, error) {
	if err := c.ensure(ctx, "mmdebstrap", "dosfstools", "mtools", "e2fsprogs", "qemu-utils"); err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp(c.path(), "system-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	root := filepath.Join(temp, "root")
	c.say("  installing Debian %s for %s: a few minutes", l.Debian.Suite, l.Name)
	if err := c.bootstrap(ctx, l, root); err != nil {
		return nil, err
	}
	if err := configure(*l.System, root); err != nil {
		return nil, err
	}
	content, err := c.systemDisk(ctx, l, temp, root)
	if err != nil {
		return nil, err
	}
	image := tree{filepath.Dir(l.System.Path): node{Mode: 0o555, UID: diskOwner, GID: diskOwner, Folder: true}}
	image.add(l.System.Path, node{Mode: 0o440, UID: diskOwner, GID: diskOwner, Content: content})
	return image, nil
}

// loader is what loads the kernel of an installed system. Its packages are in the lock;
// those of the system are the newest when it is installed.
func loader(suite, arch string) *Debian {
	packages := []string{"syslinux", "syslinux-common"}
	return &Debian{Suite: suite, Packages: packages, Only: packages, arch: arch}
}

// bootstrap installs the packages below root.
func (c *cache) bootstrap(ctx context.Context, l List, root string) error {
	args := []string{"--mode=root", "--variant=minbase", "--format=directory", "--architectures=" + l.arch,
		"--include=" + strings.Join(l.Debian.Packages, ","),
		// Only what the guest needs to find its root: Debian's own initial RAM disk has all drivers.
		`--setup-hook=mkdir -p "$1/etc/initramfs-tools/conf.d" && echo MODULES=list > "$1/etc/initramfs-tools/conf.d/guest" && printf '%s\n' ` +
			strings.Join(l.System.Modules, " ") + ` > "$1/etc/initramfs-tools/modules"`}
	for _, pattern := range l.System.Exclude {
		args = append(args, "--dpkgopt=path-exclude="+pattern)
	}
	args = append(args, l.Debian.Suite, root, c.sources(l.Debian.Suite))
	_, err := run(ctx, "", "mmdebstrap", args...)
	return err
}

// configure makes an installed system the image of many: without an identity, and with
// the files of the list.
func configure(s System, root string) error {
	var errs []error
	do := func(err error) { errs = append(errs, err) }
	for _, pattern := range []string{"etc/hostname", "etc/resolv.conf", "etc/ssh/ssh_host_*", "var/lib/apt/lists/*", "var/cache/apt/*"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		do(err)
		for _, file := range found {
			do(os.RemoveAll(file))
		}
	}
	units := filepath.Join(root, "etc/systemd/system")
	link := func(target, name string) {
		do(os.MkdirAll(filepath.Dir(name), 0o755))
		_ = os.Remove(name)
		do(os.Symlink(target, name))
	}
	for _, u := range s.Enable {
		link("/lib/systemd/system/"+u, filepath.Join(units, "multi-user.target.wants", u))
	}
	for _, u := range s.Mask {
		link("/dev/null", filepath.Join(units, u))
	}
	for _, f := range s.Files {
		mode, err := f.mode()
		do(err)
		file := filepath.Join(root, f.Path)
		do(os.MkdirAll(filepath.Dir(file), 0o755))
		do(os.WriteFile(file, []byte(f.Content), mode))
	}
	return errors.Join(errs...)
}

// systemDisk makes a disk with two partitions: one from which the BIOS loads the kernel,
// and one with the root file system.
func (c *cache) systemDisk(ctx context.Context, l List, dir, root string) ([]byte, error) {
	s := l.System
	files, err := c.unpacked(ctx, l)
	if err != nil {
		return nil, err
	}
	var kernel [2]string
	for i, pattern := range []string{"boot/vmlinuz-*", "boot/initrd.img-*"} {
		found, _ := filepath.Glob(filepath.Join(root, pattern))
		if len(found) != 1 {
			return nil, fmt.Errorf("want one %s in the system, found %q", pattern, found)
		}
		kernel[i] = found[0]
	}
	config := fmt.Sprintf("DEFAULT linux\nPROMPT 0\nTIMEOUT 0\nLABEL linux\n KERNEL vmlinuz\n INITRD initrd\n APPEND %s\n", s.CommandLine)
	const boot, system, disk = "boot.part", "root.part", "disk.raw"
	for name, content := range map[string][]byte{"syslinux": files["/usr/bin/syslinux"].Content, "syslinux.cfg": []byte(config)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o755); err != nil {
			return nil, err
		}
	}
	for _, step := range [][]string{
		{"truncate", "--size", fmt.Sprintf("%dM", bootMiB), boot},
		{"/usr/sbin/mkfs.vfat", "-F", "16", "--invariant", "-h", "2048", "-n", "BOOT", boot},
		{"mcopy", "-i", boot, "syslinux.cfg", "::"},
		{"mcopy", "-i", boot, kernel[0], "::vmlinuz"},
		{"mcopy", "-i", boot, kernel[1], "::initrd"},
		{filepath.Join(dir, "syslinux"), "--install", boot},
		{"truncate", "--size", fmt.Sprintf("%dM", s.SizeMiB), system},
		// The disk is lost with the pod, and so needs no journal.
		{"/usr/sbin/mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-F", "-d", root, system},
	} {
		if _, err := run(ctx, dir, step[0], step[1:]...); err != nil {
			return nil, err
		}
	}
	if err := partition(filepath.Join(dir, disk), files["/usr/lib/syslinux/mbr/mbr.bin"].Content, filepath.Join(dir, boot), filepath.Join(dir, system)); err != nil {
		return nil, err
	}
	if _, err := run(ctx, dir, "qemu-img", "convert", "-O", "qcow2", "-c", disk, "disk.qcow2"); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, "disk.qcow2"))
}

// partition writes a disk with a boot record and two partitions, of which the first is
// the one to boot from.
func partition(disk string, loader []byte, parts ...string) error {
	const start, tableAt = 1 << 20, 446
	record := make([]byte, sectorBytes)
	if copy(record, loader) > tableAt {
		return errors.New("the boot loader overlaps the partition table")
	}
	out, err := os.Create(disk)
	if err != nil {
		return err
	}
	defer out.Close()
	at := int64(start)
	for i, part := range parts {
		in, err := os.Open(part)
		if err != nil {
			return err
		}
		defer in.Close()
		if _, err := out.Seek(at, io.SeekStart); err != nil {
			return err
		}
		size, err := io.Copy(out, in)
		if err != nil {
			return err
		}
		entry := record[tableAt+16*i:]
		entry[0], entry[4] = []byte{0x80, 0}[i], []byte{0x0e, 0x83}[i] // FAT16 by LBA, Linux
		copy(entry[1:4], []byte{0xfe, 0xff, 0xff})
		copy(entry[5:8], []byte{0xfe, 0xff, 0xff})
		binary.LittleEndian.PutUint32(entry[8:], uint32(at/sectorBytes))
		binary.LittleEndian.PutUint32(entry[12:], uint32(size/sectorBytes))
		at += size
	}
	record[510], record[511] = 0x55, 0xaa
	_, err = out.WriteAt(record, 0)
	return errors.Join(err, out.Close())
}
