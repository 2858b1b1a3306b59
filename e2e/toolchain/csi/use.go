package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// usesDir is the folder of a volume with a folder for each node that uses it, which has a
// file for each place where it is mounted, which has its path.
const usesDir = "uses"

// oneNode says that the access mode is for one node at a time.
func oneNode(m csi.VolumeCapability_AccessMode_Mode) bool {
	switch m {
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:
		return true
	}
	return false
}

// use notes that the node uses the volume at the path. It is refused if the access mode is
// for one node and another one uses the volume: a disk that is attached to one host has no
// second one, which the loop device of this driver would have.
func (n node) use(id, target string, mode csi.VolumeCapability_AccessMode_Mode) error {
	if err := checkID(id); err != nil {
		return err
	}
	return n.locked(id, func(uses string) error {
		if oneNode(mode) {
			nodes, err := os.ReadDir(uses)
			if err != nil {
				return err
			}
			for _, other := range nodes {
				if other.Name() != n.name {
					return status.Errorf(codes.FailedPrecondition, "volume %s is in use on node %s, and its access mode is for one node", id, other.Name())
				}
			}
		}
		own := filepath.Join(uses, n.name)
		if err := os.MkdirAll(own, 0o700); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(own, nameOf(target)), []byte(target), 0o600)
	})
}

// leave forgets that the node uses the volume at the path.
func (n node) leave(id, target string) error {
	if err := checkID(id); err != nil {
		return err
	}
	err := n.locked(id, func(uses string) error {
		if err := remove(filepath.Join(uses, n.name, nameOf(target))); err != nil {
			return err
		}
		err := os.Remove(filepath.Join(uses, n.name))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTEMPTY) {
			return nil
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the volume is gone
	}
	return err
}

// prune forgets what the node used before it started anew: nothing is mounted there now.
func (n node) prune() error {
	files, err := filepath.Glob(filepath.Join(n.volumes, "volumes", "*", usesDir, n.name, "*"))
	if err != nil {
		return err
	}
	var faults []error
	for _, f := range files {
		target, err := os.ReadFile(f)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		var at, above unix.Stat_t
		// A block device is a file of another file system, as a mounted one is.
		if unix.Stat(string(target), &at) == nil && unix.Stat(filepath.Dir(string(target)), &above) == nil && at.Dev != above.Dev {
			continue
		}
		faults = append(faults, n.leave(filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(f)))), string(target)))
	}
	return errors.Join(faults...)
}

// locked calls do with the folder of the volume's uses while no other node changes it.
func (n node) locked(id string, do func(uses string) error) error {
	dir := filepath.Join(n.volumes, "volumes", id)
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	uses := filepath.Join(dir, usesDir)
	if err := os.MkdirAll(uses, 0o700); err != nil {
		return err
	}
	return do(uses)
}

// nameOf is the name of the file for a path.
func nameOf(target string) string {
	h := sha256.Sum256([]byte(target))
	return hex.EncodeToString(h[:16])
}
