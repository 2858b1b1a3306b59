package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// command runs a program of Debian and returns what it writes.
func command(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, text)
	}
	return text, nil
}

// roomFor is the size of the file system of a volume, which bounds how far it grows.
func roomFor(size int64) int64 { return max(8*size, 8<<30) }

// blockSize is that of the file systems.
const blockSize = 4096

// format makes a file system of the size in the file, which exists: without a journal,
// without what resizing needs, and with few inodes. It takes about 1 MiB.
func format(ctx context.Context, file string, size int64) error {
	if err := os.Truncate(file, size); err != nil {
		return err
	}
	_, err := command(ctx, "mkfs.ext4", "-q", "-F", "-b", strconv.Itoa(blockSize), "-N", "4096", "-m", "0",
		"-O", "^has_journal,^resize_inode", "-E", "lazy_itable_init=0,nodiscard", file)
	return err
}

// bound limits what can be stored in the mounted file system of the device to the size.
func bound(device, folder string, size int64) error {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return fmt.Errorf("look at the file system at %s: %w", folder, err)
	}
	kept := max(int64(s.Blocks)-size/blockSize, 0)
	file := filepath.Join("/sys/fs/ext4", filepath.Base(device), "reserved_clusters")
	return os.WriteFile(file, []byte(strconv.FormatInt(kept, 10)), 0)
}

// attach returns the loop device of the file, which it makes if there is none.
func attach(ctx context.Context, file string) (string, error) {
	device, err := deviceOf(ctx, file)
	if err != nil || device != "" {
		return device, err
	}
	return command(ctx, "losetup", "--find", "--show", file)
}

func deviceOf(ctx context.Context, file string) (string, error) {
	out, err := command(ctx, "losetup", "--noheadings", "--output", "NAME", "--associated", file)
	device, _, _ := strings.Cut(out, "\n")
	return strings.TrimSpace(device), err
}

// detach frees the loop device of the file. One in use is freed when it is not any more.
func detach(ctx context.Context, file string) error {
	device, err := deviceOf(ctx, file)
	if err != nil || device == "" {
		return err
	}
	_, err = command(ctx, "losetup", "--detach", device)
	return err
}

// resized has the loop device take the new size of its file.
func resized(ctx context.Context, file string) error {
	device, err := attach(ctx, file)
	if err != nil {
		return err
	}
	_, err = command(ctx, "losetup", "--set-capacity", device)
	return err
}

// flush writes what the kernel has in memory for the device to its file.
func flush(device string) error {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// The two ioctls of a file system, from linux/fs.h.
const (
	fifreeze = 0xC0045877
	fithaw   = 0xC0045878
)

// frozen calls do while the file system on the device is frozen: its file is complete
// and does not change. The folder is where it is mounted meanwhile.
func frozen(device, folder string, do func() error) (err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, abandon(folder)) }()
	if err := unix.Mount(device, folder, "ext4", 0, ""); err != nil {
		return fmt.Errorf("mount %s: %w", device, err)
	}
	if err := onFolder(folder, fifreeze); err != nil {
		return fmt.Errorf("freeze %s: %w", device, err)
	}
	return do()
}

// abandon thaws and unmounts what is mounted at the path, and removes the path.
func abandon(path string) error {
	if is, err := mountPoint(path); err != nil || !is {
		return errors.Join(err, os.Remove(path))
	}
	if err := onFolder(path, fithaw); err != nil && !errors.Is(err, unix.EINVAL) { // it is not frozen
		return fmt.Errorf("thaw %s: %w", path, err)
	}
	if err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW); err != nil {
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	return os.Remove(path)
}

// mountPoint says whether another file system than its folder's is at the path.
func mountPoint(path string) (bool, error) {
	var at, above unix.Stat_t
	if err := errors.Join(unix.Lstat(path, &at), unix.Stat(filepath.Dir(path), &above)); err != nil {
		return false, fmt.Errorf("look at %s: %w", path, err)
	}
	return at.Dev != above.Dev, nil
}

func onFolder(path string, request uint) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(unix.IoctlSetInt(int(f.Fd()), request, 0), f.Close())
}

// sparseCopy copies a file, sharing its blocks where the file system can, else without
// its holes.
func sparseCopy(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) != nil {
		err = copyData(out, in)
	}
	return errors.Join(err, out.Close())
}

func copyData(out, in *os.File) error {
	info, err := in.Stat()
	if err != nil {
		return err
	}
	for at := int64(0); at < info.Size(); {
		begin, err := in.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // the rest is a hole
		}
		if err != nil {
			return err
		}
		end, err := in.Seek(begin, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if _, err := in.Seek(begin, io.SeekStart); err != nil {
			return err
		}
		if _, err := out.Seek(begin, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.CopyN(out, in, end-begin); err != nil {
			return err
		}
		at = end
	}
	return out.Truncate(info.Size())
}
