package volume

import (
	"cmp"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// Cluster are the facts that a pod's volumes depend on.
type Cluster struct {
	// ContainerDisks is the way in which container disks reach the pod. Empty:
	// [ImageVolume].
	ContainerDisks ContainerDisks
	// Claims are the claims that the volumes name, by their names. A nil value: the
	// claim does not exist.
	Claims map[string]*corev1.PersistentVolumeClaim
	// Filesystems are the volumes that the guest mounts as file systems, by their
	// names: true says that they are disks too.
	Filesystems map[string]bool
	// Reserved are the names of the pod's other volumes and containers.
	Reserved Names
	// Kinds are the kinds of volumes that are served. Nil: [Kinds].
	Kinds []Kind
}

// Part is the part of a pod that belongs to volumes of an instance.
type Part struct {
	// Volumes are the pod's volumes.
	Volumes []corev1.Volume
	// Mounts and Devices are those of the compute container.
	Mounts  []corev1.VolumeMount
	Devices []corev1.VolumeDevice
	// Init are the containers that have to end before the compute container starts,
	// in this order.
	Init []Init
	// Shares are the containers that serve file systems while the compute container
	// runs.
	Shares []Share
	// PullSecrets are the secrets with which images are pulled, each once.
	PullSecrets []corev1.LocalObjectReference
	// Account is the service account that the pod runs as. Empty: any.
	Account string
}

// Init is a container that runs the launcher's program once.
type Init struct {
	Name string
	// Image is the image. Empty: the launcher's, with the launcher's pull policy.
	Image      string
	PullPolicy corev1.PullPolicy
	// Program is the path of the launcher's program. Empty: the path in the
	// launcher's image.
	Program string
	Args    []string
	Mounts  []corev1.VolumeMount
}

// Pod returns what a pod needs for volumes. Its error joins the faults of all
// volumes, which wrap [vmi.ErrInvalid].
func Pod(volumes []vmi.Volume, c Cluster) (Part, error) { return orAll(c.Kinds).part(volumes, c) }

func (all kinds) part(volumes []vmi.Volume, c Cluster) (Part, error) {
	reserved := c.Reserved
	for _, k := range all {
		reserved.Volumes = slices.Concat(reserved.Volumes, k.Shared.Volumes)
		reserved.Containers = slices.Concat(reserved.Containers, k.Shared.Containers)
	}
	names := podNames(volumes, reserved)
	var out Part
	var faults []error
	for _, v := range volumes {
		k, err := all.of(v)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		if k.Pod == nil {
			continue
		}
		p := k.Pod(v, names[v.Name], c)
		if disk, ok := c.Filesystems[v.Name]; ok {
			if p, err = k.share(v, names[v.Name], p, disk); err != nil {
				faults = append(faults, err)
			}
		}
		out.add(p)
	}
	if err := errors.Join(append(faults, all.twice(volumes))...); err != nil {
		return Part{}, err
	}
	return out, nil
}

// Add adds what is in q and not yet in p: volumes may share things.
func (p *Part) Add(q Part) { p.add(q) }

func (p *Part) add(q Part) {
	p.Volumes = union(p.Volumes, q.Volumes, func(v corev1.Volume) string { return v.Name })
	p.Mounts = union(p.Mounts, q.Mounts, func(m corev1.VolumeMount) string { return m.MountPath })
	p.Devices = union(p.Devices, q.Devices, func(d corev1.VolumeDevice) string { return d.DevicePath })
	p.Init = union(p.Init, q.Init, func(i Init) string { return i.Name })
	p.Shares = union(p.Shares, q.Shares, func(s Share) string { return s.Name })
	p.Account = cmp.Or(p.Account, q.Account)
	p.PullSecrets = union(p.PullSecrets, q.PullSecrets, func(s corev1.LocalObjectReference) string { return s.Name })
}

func union[T any](all, more []T, key func(T) string) []T {
	known := map[string]bool{}
	for _, a := range all {
		known[key(a)] = true
	}
	for _, m := range more {
		if !known[key(m)] {
			known[key(m)] = true
			all = append(all, m)
		}
	}
	return all
}
