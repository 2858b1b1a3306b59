package images

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// diskOwner is the user as whom QEMU runs, which must be able to read the disk.
const diskOwner = 107

// diskTools make a bootable disk.
var diskTools = []string{"dosfstools", "mtools", "qemu-utils"}

// disk makes the file system of a container disk: one bootable qcow2 file.
func (c *cache) disk(ctx context.Context, l List, init string) (tree, error) {
	if err := c.ensure(ctx, diskTools...); err != nil {
		return nil, err
	}
	system, err := c.unpacked(ctx, l)
	if err != nil {
		return nil, err
	}
	lister, err := c.busybox(ctx, l, system)
	if err != nil {
		return nil, err
	}
	ramdisk, err := initialRAMDisk(ctx, system, *l.Disk, init, lister)
	if err != nil {
		return nil, err
	}
	later, err := laterFiles(system, l.arch, l.Disk.Later)
	if err != nil {
		return nil, err
	}
	kernels := system.match("/boot/vmlinuz-*")
	if len(kernels) != 1 {
		return nil, fmt.Errorf("want one kernel in the packages, found %q", kernels)
	}
	temp, err := os.MkdirTemp(c.path(), "disk-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	boot := bootDisk{dir: temp, files: map[string][]byte{
		kernelName: system[kernels[0]].Content,
		"initrd":   ramdisk,
		laterName:  later,
		loaderName: system["/usr/bin/syslinux"].Content,
		"syslinux.cfg": fmt.Appendf(nil, "DEFAULT linux\nPROMPT 0\nTIMEOUT 0\nLABEL linux\n KERNEL "+kernelName+"\n INITRD initrd\n APPEND %s\n",
			l.Disk.CommandLine),
		// UEFI firmware that finds no boot loader starts its shell, which runs this.
		"startup.nsh": fmt.Appendf(nil, "@echo -off\r\n\\%s initrd=\\initrd %s\r\n", kernelName, l.Disk.CommandLine),
	}}
	content, err := boot.make(ctx)
	if err != nil {
		return nil, err
	}
	image := tree{filepath.Dir(l.Disk.Path): node{Mode: 0o555, UID: diskOwner, GID: diskOwner, Folder: true}}
	image.add(l.Disk.Path, node{Mode: 0o440, UID: diskOwner, GID: diskOwner, Content: content})
	return image, nil
}

// loaderName is the file of the BIOS's boot loader, which guests of arm64 have not.
const loaderName = "syslinux"

// kernelName is the name of the kernel, which is a program for UEFI firmware too.
const kernelName = "vmlinuz.efi"

// laterName is the name by which process 1 knows the archive of the files that it
// boots without.
const laterName = "later.tgz"

// laterFiles is the archive of files that the guest boots without.
func laterFiles(system tree, arch string, patterns []string) ([]byte, error) {
	files := tree{}
	if err := keep(files, system, arch, patterns); err != nil {
		return nil, err
	}
	return compressed(files.writeTar)
}

// initialRAMDisk is the guest's root file system, compressed.
func initialRAMDisk(ctx context.Context, system tree, d Disk, init string, lister []byte) ([]byte, error) {
	root := tree{}
	for _, dir := range []string{"/dev", "/etc", "/lib/modules", "/proc", "/root", "/run", "/sys", "/tmp", "/www"} {
		root.add(dir, node{Mode: 0o755, Folder: true})
	}
	program, err := os.ReadFile(init)
	if err != nil {
		return nil, err
	}
	root.add("/init", node{Mode: 0o755, Content: program})
	// The name by which init knows that the DHCP client started it.
	root.add("/bin/dhcp-event", node{Mode: 0o777, Link: "/init"})
	root.add("/etc/passwd", node{Mode: 0o644, Content: []byte("root:x:0:0::/root:/bin/sh\n")})
	root.add("/etc/group", node{Mode: 0o644, Content: []byte("root:x:0:\n")})
	if err := addBusybox(ctx, root, system, lister); err != nil {
		return nil, err
	}
	modules, err := collectModules(system, d.Modules)
	if err != nil {
		return nil, err
	}
	root.add("/lib/modules/index", node{Mode: 0o644, Content: []byte(modules.text.String())})
	for name, n := range modules.files {
		root[name] = n
	}
	// Unpacking gzip takes the guest less time than reading the files as they are
	// would take its boot loader.
	return compressed(root.writeCPIO)
}

// compressed is what write writes, through gzip.
func compressed(write func(io.Writer) error) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(write(z), z.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// busybox is the program of the suite that runs on this host.
func (c *cache) busybox(ctx context.Context, l List, system tree) ([]byte, error) {
	const name, file = "busybox-static", "/bin/busybox"
	if l.arch == runtime.GOARCH {
		return system[file].Content, nil
	}
	d := Debian{Suite: l.Debian.Suite, arch: runtime.GOARCH}
	p, ok := c.lock.Suites[named(d.Suite, d.arch)][name]
	if !ok {
		return nil, fmt.Errorf("%s has no version of %s for %s", lockName, name, d.arch)
	}
	files, err := c.unpack(ctx, d, []Package{{Name: name, Version: p.Version, SHA256: p.SHA256}})
	return files[file].Content, err
}

// addBusybox adds busybox with all commands that the lister, one that runs on this host,
// has. Linking them here saves the guest the time to do it.
func addBusybox(ctx context.Context, root, system tree, lister []byte) error {
	busybox := system["/bin/busybox"]
	temp, err := os.CreateTemp("", "busybox-")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	if _, err := temp.Write(lister); err != nil {
		return err
	}
	if err := temp.Chmod(0o755); err != nil {
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	list, err := run(ctx, "", temp.Name(), "--list")
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(string(list)) {
		root.add("/bin/"+name, node{Mode: 0o777, Link: "busybox"})
	}
	root.add("/bin/busybox", node{Mode: 0o755, Content: busybox.Content})
	return nil
}

// bootDisk makes a disk that is one FAT file system with a boot loader, without a
// partition table: nothing but the firmware ever looks at it.
type bootDisk struct {
	dir   string
	files map[string][]byte
}

func (b bootDisk) make(ctx context.Context) ([]byte, error) {
	size := 768 << 10 // the loader and the tables of the file system
	for name, content := range b.files {
		if err := os.WriteFile(filepath.Join(b.dir, name), content, 0o755); err != nil {
			return nil, err
		}
		if name != loaderName {
			size += len(content)
		}
	}
	const raw = "disk.raw"
	f, err := os.Create(filepath.Join(b.dir, raw))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(int64(size+511) / 512 * 512); err != nil {
		return nil, err
	}
	steps := [][]string{
		{"/usr/sbin/mkfs.vfat", "-F", "16", "--invariant", "-n", "BOOT", raw},
		{"mcopy", "-i", raw, "syslinux.cfg", "startup.nsh", kernelName, "initrd", laterName, "::"},
	}
	if len(b.files[loaderName]) > 0 {
		steps = append(steps, []string{filepath.Join(b.dir, loaderName), "--install", raw})
	}
	// Compressing it would save 3 MB and cost each boot half a second.
	steps = append(steps, []string{"qemu-img", "convert", "-O", "qcow2", raw, "disk.qcow2"})
	for _, step := range steps {
		if _, err := run(ctx, b.dir, step[0], step[1:]...); err != nil {
			return nil, err
		}
	}
	return os.ReadFile(filepath.Join(b.dir, "disk.qcow2"))
}
