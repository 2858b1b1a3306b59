package main

import (
	"cmp"
	"path"
	"slices"

	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
)

// xml is the domain of v on a host with what is assumed of disks and networks.
func xml(v *vmi.VirtualMachineInstance, host domain.Host) (string, error) {
	attachments, err := attachments(v)
	if err != nil {
		return "", err
	}
	host.Disks = map[string]domain.Disk{}
	for _, a := range attachments {
		host.Disks[a.Name] = domain.Disk{Attachment: a, DirectIO: true}
	}
	host.Interfaces = interfaces(v)
	d, err := domain.Build(v, host)
	if err != nil {
		return "", err
	}
	return d.Marshal()
}

// assumedBytes is the assumed size of a disk.
const assumedBytes = 1 << 30

// attachments are the disks of v, with what a launcher would observe in its pod.
func attachments(v *vmi.VirtualMachineInstance) ([]storage.Attachment, error) {
	node := volume.Node{Images: map[string]storage.Image{}, Paths: map[string]storage.Facts{}, Content: map[string][]byte{}}
	observations, err := volume.Observations(v.Spec.Volumes, node)
	if err != nil {
		return nil, err
	}
	for _, o := range observations {
		if c := o.Image; c != nil {
			node.Images[o.Volume] = storage.Image{Path: path.Join(c.Dir, cmp.Or(c.File, "disk/disk.qcow2")), Format: storage.QCOW2, SizeBytes: assumedBytes}
		}
		for _, p := range o.Paths {
			node.Paths[p] = assumed(p)
		}
		for _, p := range o.Content {
			node.Content[p] = nil
		}
	}
	return volume.Resolve(v, node)
}

// assumed are the facts of a path in the pod: of the image in a claim, or of the
// folder of the claim. No claim is a device.
func assumed(p string) storage.Facts {
	switch {
	case path.Dir(p) == "/dev":
		return storage.Facts{}
	case path.Ext(p) != "":
		return storage.Facts{Kind: storage.File, SizeBytes: assumedBytes, DirectIO: true}
	default:
		return storage.Facts{Kind: storage.Directory, FreeBytes: assumedBytes}
	}
}

// interfaces are the interfaces of v as virt-handler binds them.
func interfaces(v *vmi.VirtualMachineInstance) []network.Attachment {
	var all []network.Attachment
	for _, i := range v.Spec.Domain.Devices.Interfaces {
		at := slices.IndexFunc(v.Spec.Networks, func(n vmi.Network) bool { return n.Name == i.Name })
		if at < 0 {
			continue
		}
		n := v.Spec.Networks[at]
		all = append(all, network.Attachment{
			Name: i.Name, Tap: network.NamesOf(n.Name, network.PodLinkName(n)).Tap, MAC: cmp.Or(i.MacAddress, network.MAC(v.UID, i.Name)),
		})
	}
	return all
}
