package volume

import (
	"cmp"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// Space is how the sizes of disks and of the claims that they are in may differ. The
// zero value is KubeVirt's default.
type Space struct {
	// ReserveBytes is what a new disk leaves free of the file system. 0: 128 KiB.
	ReserveBytes int64
	// TolerancePercent is by how many per cent a claim may be smaller than the disk in
	// it, and a new disk smaller than it should be because the file system has less
	// space. 0: 10.
	TolerancePercent int64
}

const (
	leastFree = 128 << 10
	tolerated = 10
	// whole is what the size of a disk that is made is a multiple of.
	whole = 1 << 20
)

func (s Space) reserve() int64 { return cmp.Or(s.ReserveBytes, leastFree) }

// least is the least size where one of this size is wanted.
func (s Space) least(size int64) int64 {
	return size / 100 * (100 - min(cmp.Or(s.TolerancePercent, tolerated), 100))
}

// newSize is the size of a disk that is made in a claim: what the claim has, less what
// the file system needs for itself, and not more than is free.
func (s Space) newSize(info *vmi.PersistentVolumeClaimInfo, free int64) (int64, error) {
	want, err := wanted(info)
	if err != nil {
		return 0, err
	}
	size := min(want, (free-s.reserve())/whole*whole)
	if size < max(s.least(want), 1) {
		return 0, fmt.Errorf("%s free of its file system are too few for a disk of %s: delete what else is in it, or take a larger one", mebibytes(free), mebibytes(want))
	}
	return size, nil
}

// wanted is the size of a disk that has all of a claim but what the file system needs
// for itself.
func wanted(info *vmi.PersistentVolumeClaimInfo) (int64, error) {
	want := claimBytes(info)
	if o := info.FilesystemOverhead; o != nil {
		share, err := strconv.ParseFloat(*o, 64)
		if err != nil || share < 0 || share >= 1 {
			return 0, fmt.Errorf("the share %q of the file system is not from 0 to 1", *o)
		}
		want -= int64(float64(want) * share)
	}
	want = min(want/whole*whole, storage.MaxBytes)
	if want <= 0 {
		return 0, fmt.Errorf("its size of %d bytes is too small for a disk: %w", claimBytes(info), vmi.ErrInvalid)
	}
	return want, nil
}

// grown is the size of a disk in a claim that is larger than the disk, or that of the
// disk. It grows as far as there is space, and is never shortened: what is not known
// of the claim, or a file system that is full, is no reason not to start.
func (s Space) grown(disk storage.Facts, info *vmi.PersistentVolumeClaimInfo, free int64) int64 {
	if info == nil {
		return disk.SizeBytes
	}
	want, err := wanted(info)
	if err != nil {
		return disk.SizeBytes
	}
	// What the disk has of the file system is its own.
	return max(disk.SizeBytes, min(want, (free+disk.AllocatedBytes-s.reserve())/whole*whole))
}

// tooLarge is the fault of a disk image of size bytes in a claim that is too small for
// it: a guest that writes to all of it would fill the file system.
func (s Space) tooLarge(size int64, info *vmi.PersistentVolumeClaimInfo) error {
	if info == nil {
		return nil
	}
	if has := claimBytes(info); has > 0 && has < s.least(size) {
		return fmt.Errorf("%s in it has %d bytes, and the claim has %d: make the claim at least as large as the image, or the image smaller: %w", diskFile, size, has, vmi.ErrInvalid)
	}
	return nil
}

// claimBytes is the size of the claim, which has it when it is bound.
func claimBytes(info *vmi.PersistentVolumeClaimInfo) int64 {
	if q, ok := info.Capacity[corev1.ResourceStorage]; ok {
		return q.Value()
	}
	q := info.Requests[corev1.ResourceStorage]
	return q.Value()
}

func mebibytes(n int64) string {
	return resource.NewQuantity(n/whole*whole, resource.BinarySI).String()
}
