package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// node mounts volumes for the pods of a node.
type node struct {
	csi.UnimplementedNodeServer
	name    string
	volumes string // the folder of the controller
}

// NodeGetInfo names the node; every volume can be reached from every node.
func (n node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.name}, nil
}

// NodeGetCapabilities says what the node can do.
func (node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	var all []*csi.NodeServiceCapability
	for _, t := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME, csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		all = append(all, &csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: t}}})
	}
	return &csi.NodeGetCapabilitiesResponse{Capabilities: all}, nil
}

// NodePublishVolume mounts a volume for a pod, unless it is mounted there already.
func (n node) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	device, err := deviceIn(r.VolumeContext)
	if err != nil {
		return nil, err
	}
	if err := n.use(r.VolumeId, r.TargetPath, r.VolumeCapability.GetAccessMode().GetMode()); err != nil {
		return nil, err
	}
	if done, err := holds(r.TargetPath, device); err != nil || done {
		return &csi.NodePublishVolumeResponse{}, err
	}
	publish := n.publishMount
	if r.VolumeCapability.GetBlock() != nil {
		publish = publishBlock
	}
	if err := publish(r.VolumeId, device, r.TargetPath); err != nil {
		return nil, fmt.Errorf("publish %s at %s: %w", device, r.TargetPath, err)
	}
	if r.Readonly {
		// One file system cannot be mounted in both ways; one mount of it can be read-only.
		if err := unix.Mount("", r.TargetPath, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
			return nil, fmt.Errorf("remount %s read-only: %w", r.TargetPath, err)
		}
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func publishBlock(_, device, target string) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(target, os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), unix.Mount(device, target, "", unix.MS_BIND, ""))
}

// publishMount mounts the file system and bounds it.
func (n node) publishMount(id, device, target string) error {
	size, err := n.size(id)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(target, 0o750); err != nil {
		return err
	}
	if err := unix.Mount(device, target, "ext4", 0, ""); err != nil {
		return err
	}
	if err := bound(device, target, size); err != nil {
		return errors.Join(err, unix.Unmount(target, unix.UMOUNT_NOFOLLOW))
	}
	return nil
}

// size is the size of a volume.
func (n node) size(id string) (int64, error) {
	if err := checkID(id); err != nil {
		return 0, err
	}
	size, err := readSize(filepath.Join(n.volumes, "volumes", id))
	if err != nil {
		return 0, fmt.Errorf("read the size of volume %s: %w", id, err)
	}
	return size, nil
}

// NodeUnpublishVolume unmounts a volume, if it is mounted.
func (n node) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	for {
		err := unix.Unmount(r.TargetPath, unix.UMOUNT_NOFOLLOW)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
			break // it is not mounted (any more)
		}
		if err != nil {
			return nil, fmt.Errorf("unmount %s: %w", r.TargetPath, err)
		}
	}
	if err := remove(r.TargetPath); err != nil {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, n.leave(r.VolumeId, r.TargetPath)
}

// NodeExpandVolume has the file system of a volume take its new size.
func (n node) NodeExpandVolume(_ context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	var stat unix.Stat_t
	if err := unix.Stat(r.VolumePath, &stat); err != nil {
		return nil, status.Errorf(codes.NotFound, "volume %s is not at %s: %v", r.VolumeId, r.VolumePath, err)
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR && r.VolumeCapability.GetBlock() == nil {
		size, err := n.size(r.VolumeId)
		if err != nil {
			return nil, err
		}
		if err := bound(fmt.Sprintf("/dev/loop%d", unix.Minor(stat.Dev)), r.VolumePath, size); err != nil {
			return nil, err
		}
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: r.CapacityRange.GetRequiredBytes()}, nil
}

// deviceIn is the loop device that the controller has named.
func deviceIn(volume map[string]string) (string, error) {
	device := volume[deviceKey]
	if ok, err := filepath.Match("/dev/loop[0-9]*", device); err != nil || !ok {
		return "", status.Errorf(codes.InvalidArgument, "invalid device %q", device)
	}
	return device, nil
}

// holds says whether the device, or its file system, is mounted at the path.
func holds(path, device string) (bool, error) {
	var want, have unix.Stat_t
	if err := unix.Stat(device, &want); err != nil {
		return false, fmt.Errorf("look at %s: %w", device, err)
	}
	err := unix.Stat(path, &have)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return have.Dev == want.Rdev || have.Mode&unix.S_IFMT == unix.S_IFBLK && have.Rdev == want.Rdev, nil
}
