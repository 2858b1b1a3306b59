package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Beginnings of the ids of volumes: whether a volume has a file system.
const (
	mounted = "filesystem-"
	block   = "block-"
)

// The files of a volume: its content, and its size in bytes as text.
const (
	imageFile = "image"
	sizeFile  = "size"
)

// deviceKey is the key of the loop device in a volume's context.
const deviceKey = "device"

// granule is what sizes are multiples of.
const granule = 1 << 20

// controller makes, expands, copies and removes volumes.
type controller struct {
	csi.UnimplementedControllerServer
	dir string
	mu  sync.Mutex // one change at a time: they are fast
}

func (c *controller) volume(id string) string   { return filepath.Join(c.dir, "volumes", id, imageFile) }
func (c *controller) snapshot(id string) string { return filepath.Join(c.dir, "snapshots", id) }
func (c *controller) copying(id string) string  { return filepath.Join(c.dir, "copying", id) }

// prepare makes the folders, and removes what a killed controller has left half made.
func (c *controller) prepare() error {
	for _, dir := range []string{filepath.Join(c.dir, "volumes"), c.snapshot(""), c.copying("")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	left, err := os.ReadDir(c.copying(""))
	if err != nil {
		return err
	}
	for _, e := range left {
		clean := abandon
		if e.Name() == newVolume {
			clean = os.RemoveAll
		}
		if err := clean(c.copying(e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// ControllerGetCapabilities says what the controller can do.
func (*controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	var all []*csi.ControllerServiceCapability
	for _, t := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT, csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		all = append(all, &csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: t}}})
	}
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: all}, nil
}

// CreateVolume makes a volume, empty or as a copy. One that is there is returned as it is.
func (c *controller) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := mounted + r.Name
	for _, v := range r.VolumeCapabilities {
		if v.GetBlock() != nil {
			id = block + r.Name
		}
	}
	size := roundUp(max(r.CapacityRange.GetRequiredBytes(), granule))
	file := c.volume(id)
	if err := checkID(id); err != nil {
		return nil, err
	}
	if have, err := c.size(id); err == nil && have < size {
		return nil, status.Errorf(codes.AlreadyExists, "volume %s has %d bytes and not %d", id, have, size)
	} else if err == nil {
		size = have
	} else if err := c.fill(ctx, id, size, r.VolumeContentSource); err != nil {
		return nil, err
	}
	device, err := attach(ctx, file)
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId: id, CapacityBytes: size, ContentSource: r.VolumeContentSource, VolumeContext: map[string]string{deviceKey: device},
	}}, nil
}

// fill makes the files of a new volume. They appear by one rename.
func (c *controller) fill(ctx context.Context, id string, size int64, source *csi.VolumeContentSource) error {
	dir := c.copying(newVolume)
	defer os.RemoveAll(dir)
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return err
	}
	tmp, from := filepath.Join(dir, imageFile), ""
	switch {
	case source.GetSnapshot() != nil:
		from = source.GetSnapshot().SnapshotId
		if err := checkID(from); err != nil {
			return err
		}
		if err := sparseCopy(c.snapshot(from), tmp); err != nil {
			return copyError(from, err)
		}
	case source.GetVolume() != nil:
		from = source.GetVolume().VolumeId
		if err := c.copyVolume(ctx, from, tmp); err != nil {
			return err
		}
	}
	if from == "" {
		if err := os.WriteFile(tmp, nil, 0o600); err != nil {
			return err
		}
	}
	have, err := sizeOf(tmp)
	if err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(id, mounted) && from == "":
		err = format(ctx, tmp, roomFor(size))
	case strings.HasPrefix(id, mounted): // it has its room
	case have > size:
		err = status.Errorf(codes.OutOfRange, "%s has %d bytes, and the volume only %d", from, have, size)
	default:
		err = os.Truncate(tmp, size)
	}
	if err := errors.Join(err, setSize(dir, size)); err != nil {
		return err
	}
	return os.Rename(dir, filepath.Dir(c.volume(id)))
}

// newVolume is the folder, among the copies, of the volume that is being made.
const newVolume = "new"

// size is the size of a volume.
func (c *controller) size(id string) (int64, error) { return readSize(filepath.Dir(c.volume(id))) }

func readSize(dir string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(dir, sizeFile))
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(text), 10, 64)
}

// setSize replaces the file with the size at once.
func setSize(dir string, size int64) error {
	tmp := filepath.Join(dir, sizeFile+".new")
	if err := os.WriteFile(tmp, strconv.AppendInt(nil, size, 10), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(dir, sizeFile))
}

// DeleteVolume removes a volume, if it is there.
func (c *controller) DeleteVolume(ctx context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := checkID(r.VolumeId); err != nil {
		return nil, err
	}
	file := c.volume(r.VolumeId)
	if err := detach(ctx, file); err != nil {
		return nil, err
	}
	return &csi.DeleteVolumeResponse{}, os.RemoveAll(filepath.Dir(file))
}

// ControllerExpandVolume enlarges a volume's device; the node enlarges its file system.
func (c *controller) ControllerExpandVolume(ctx context.Context, r *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := checkID(r.VolumeId); err != nil {
		return nil, err
	}
	file, size := c.volume(r.VolumeId), roundUp(r.CapacityRange.GetRequiredBytes())
	have, err := c.size(r.VolumeId)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, status.Errorf(codes.NotFound, "there is no volume %s", r.VolumeId)
	}
	if err != nil {
		return nil, err
	}
	size = max(size, have)
	withFiles := strings.HasPrefix(r.VolumeId, mounted)
	room, err := sizeOf(file)
	switch {
	case err != nil:
	case withFiles && size > room:
		err = status.Errorf(codes.OutOfRange, "volume %s can grow to %d bytes and not to %d", r.VolumeId, room, size)
	case !withFiles:
		err = errors.Join(os.Truncate(file, size), resized(ctx, file))
	}
	if err != nil {
		return nil, err
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: size, NodeExpansionRequired: withFiles}, setSize(filepath.Dir(file), size)
}

// CreateSnapshot copies a volume. A snapshot that is there is returned as it is.
func (c *controller) CreateSnapshot(ctx context.Context, r *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := checkID(r.Name); err != nil {
		return nil, err
	}
	file := c.snapshot(r.Name)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		if err := errors.Join(os.RemoveAll(c.copying(newVolume)), os.Mkdir(c.copying(newVolume), 0o700)); err != nil {
			return nil, err
		}
		defer os.RemoveAll(c.copying(newVolume))
		tmp := filepath.Join(c.copying(newVolume), imageFile)
		if err := c.copyVolume(ctx, r.SourceVolumeId, tmp); err != nil {
			return nil, err
		}
		if err := os.Rename(tmp, file); err != nil {
			return nil, err
		}
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	size, err := c.size(r.SourceVolumeId)
	if err != nil {
		return nil, err
	}
	return &csi.CreateSnapshotResponse{Snapshot: &csi.Snapshot{
		SnapshotId: r.Name, SourceVolumeId: r.SourceVolumeId, SizeBytes: size, CreationTime: timestamppb.New(info.ModTime()), ReadyToUse: true,
	}}, nil
}

// DeleteSnapshot removes a snapshot, if it is there.
func (c *controller) DeleteSnapshot(_ context.Context, r *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := checkID(r.SnapshotId); err != nil {
		return nil, err
	}
	return &csi.DeleteSnapshotResponse{}, remove(c.snapshot(r.SnapshotId))
}

// ValidateVolumeCapabilities says yes to what the volume was made for.
func (c *controller) ValidateVolumeCapabilities(_ context.Context, r *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if err := checkID(r.VolumeId); err != nil {
		return nil, err
	}
	if _, err := os.Stat(c.volume(r.VolumeId)); err != nil {
		return nil, status.Errorf(codes.NotFound, "there is no volume %s", r.VolumeId)
	}
	for _, v := range r.VolumeCapabilities {
		if (v.GetBlock() != nil) != strings.HasPrefix(r.VolumeId, block) {
			return &csi.ValidateVolumeCapabilitiesResponse{Message: "the volume is of the other mode"}, nil
		}
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{VolumeCapabilities: r.VolumeCapabilities}}, nil
}

// copyVolume copies a volume that may be in use.
func (c *controller) copyVolume(ctx context.Context, id, to string) error {
	if err := checkID(id); err != nil {
		return err
	}
	from := c.volume(id)
	if _, err := os.Stat(from); err != nil {
		return status.Errorf(codes.NotFound, "there is no volume %s", id)
	}
	device, err := attach(ctx, from)
	if err != nil {
		return err
	}
	if strings.HasPrefix(id, mounted) {
		return copyError(id, frozen(device, c.copying(id), func() error { return sparseCopy(from, to) }))
	}
	if err := flush(device); err != nil {
		return copyError(id, err)
	}
	return copyError(id, sparseCopy(from, to))
}

func copyError(from string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return status.Errorf(codes.NotFound, "there is no %s", from)
	}
	return fmt.Errorf("copy %s: %w", from, err)
}

// checkID refuses an id that is not the name of a file.
func checkID(id string) error {
	if id == "" || id != filepath.Base(id) || strings.HasPrefix(id, ".") {
		return status.Errorf(codes.InvalidArgument, "invalid id %q", id)
	}
	return nil
}

func sizeOf(file string) (int64, error) {
	info, err := os.Stat(file)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func remove(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func roundUp(size int64) int64 { return (size + granule - 1) / granule * granule }
