package volume

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// ephemeral is a disk that begins as the one in a claim, which is only read. What the
// guest writes is in an overlay of the pod. Any number of VMIs may read one claim.
//
// +podvisor:entry
var ephemeral = Kind{
	Name:       "ephemeral",
	Migratable: true,
	Claim: func(v vmi.Volume) Claim {
		return Claim{Name: ephemeralClaim(v).Name, ReadOnly: true}
	},
	Pod: func(v vmi.Volume, n PodNames, c Cluster) Part { return readOnly(ephemeralClaim(v).pod(v, n, c)) },
	Observe: func(v vmi.Volume, n Node) Observation {
		return Observation{Paths: []string{claimDir(n.Root, v.Name), claimFile(n.Root, v.Name), devicePath(n.Root, v.Name)}}
	},
	Attach: func(instance *vmi.VirtualMachineInstance, v vmi.Volume, n Node) (storage.Attachment, error) {
		c := Claim{Name: ephemeralClaim(v).Name, ReadOnly: true}
		base, err := c.attach(instance, v, n)
		if err != nil {
			return storage.Attachment{}, fmt.Errorf("claim %s: %w", c.Name, err)
		}
		return storage.Attachment{
			Path:      overlayPath(n.Root, v.Name),
			Format:    storage.QCOW2,
			SizeBytes: roundUp(base.SizeBytes),
			Source: storage.Overlay{Base: storage.Image{
				Path: base.Path, Format: base.Format, SizeBytes: base.SizeBytes, Device: base.Path == devicePath(n.Root, v.Name),
			}},
		}, nil
	},
}

func ephemeralClaim(v vmi.Volume) Claim {
	if p := v.Ephemeral.PersistentVolumeClaim; p != nil {
		return Claim{Name: p.ClaimName, ReadOnly: p.ReadOnly}
	}
	return Claim{}
}

// readOnly lets the container only read what is in the claims. Their file systems are
// mounted for writing on the node nevertheless, unless the spec says otherwise: the
// kubelet gives the files of a claim to the pod's group only then. No group
// owns a device, and the container gets it for reading.
func readOnly(p Part) Part {
	for i := range p.Mounts {
		p.Mounts[i].ReadOnly = true
	}
	if len(p.Devices) > 0 {
		for i := range p.Volumes {
			p.Volumes[i].VolumeSource = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
				ClaimName: p.Volumes[i].PersistentVolumeClaim.ClaimName, ReadOnly: true,
			}}
		}
	}
	return p
}
