package pod

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
)

// Move is what the pod that a migration moves an instance to depends on besides the instance.
// The zero value is a pod like the first one.
type Move struct {
	// Added are labels of nodes that the migration asks for. What the instance needs wins.
	Added map[string]string
	// Source are labels of the node that the instance leaves, and Kept are those of nodes that
	// the pod which it leaves asks for. They say which processor the guest has.
	Source, Kept map[string]string
	// Images are the references, with digests, of the images that the instance runs with: by
	// the names of volumes and of init containers. An image that is not in it is that of the
	// spec.
	Images map[string]string
	// Layout is the layout of the guest's PCI bus, as the annotation of the pod that the
	// instance runs in has it. The instance has none if it was stored while the webhook was
	// away. Empty: it is that of the instance.
	Layout string
}

// MoveOf is what the target of the migration depends on. Source is the pod that the
// instance runs in, and n its node. Nil: nothing is known of it.
func MoveOf(m *vmi.VirtualMachineInstanceMigration, source *corev1.Pod, n *corev1.Node) *Move {
	out := &Move{Added: m.Spec.AddedNodeSelector}
	if n != nil {
		out.Source = n.Labels
	}
	if source != nil {
		out.Kept, out.Images, out.Layout = source.Spec.NodeSelector, digests(source), source.Annotations[vmi.PCITopologyAnnotation]
	}
	return out
}

// digests are the images of the pod's volumes and init containers of which their digest is
// known.
func digests(p *corev1.Pod) map[string]string {
	out := map[string]string{}
	note := func(name, reference, reported string) {
		if pinned := withDigest(reference, reported); pinned != "" {
			out[name] = pinned
		}
	}
	reported := map[string]string{}
	for _, s := range p.Status.ContainerStatuses {
		for _, m := range s.VolumeMounts {
			if m.VolumeStatus != nil && m.VolumeStatus.Image != nil {
				reported[m.Name] = m.VolumeStatus.Image.ImageRef
			}
		}
	}
	for _, v := range p.Spec.Volumes {
		if v.Image != nil {
			note(v.Name, v.Image.Reference, reported[v.Name])
		}
	}
	for _, s := range p.Status.InitContainerStatuses {
		for _, c := range p.Spec.InitContainers {
			if c.Name == s.Name {
				note(c.Name, c.Image, s.ImageID)
			}
		}
	}
	return out
}

// withDigest is the reference with the digest that a node reports of its image. Empty: the
// node reports none by which the image can be pulled from its repository, as of an image
// that was not pulled.
func withDigest(reference, reported string) string {
	from, digest, ok := strings.Cut(reported, "@")
	name := repository(reference)
	if !ok || !strings.HasPrefix(digest, "sha256:") || from != name && from != "docker.io/"+name && from != "docker.io/library/"+name {
		return ""
	}
	return name + "@" + digest
}

// repository is the reference without a tag and a digest.
func repository(reference string) string {
	name, _, _ := strings.Cut(reference, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name = name[:i]
	}
	return name
}

// move is what the pod depends on as a target. Of another role it is nothing.
func (c Config) move() Move {
	if c.Role.Name != vmi.RoleTarget || c.Facts.Move == nil {
		return Move{}
	}
	return *c.Facts.Move
}

// added are the labels that the migration asks for, in a new map.
func (m Move) added() map[string]string {
	s := map[string]string{}
	maps.Copy(s, m.Added)
	return s
}

// pin gives the images the digests that the instance runs with.
func (m Move) pin(p *volume.Part) {
	for i := range p.Volumes {
		v := &p.Volumes[i]
		if pinned := m.Images[v.Name]; pinned != "" && v.Image != nil {
			image := *v.Image
			image.Reference = pinned
			v.Image = &image
		}
	}
	for i := range p.Init {
		if pinned := m.Images[p.Init[i].Name]; pinned != "" && p.Init[i].Image != "" {
			p.Init[i].Image = pinned
		}
	}
}

// processor adds the labels of nodes on which the guest keeps its processor: those that its
// pod was given by an earlier migration, so that the way back stays open, or else those that
// follow from its node.
func (m Move) processor(s map[string]string, cpu *vmi.CPU) {
	if !hasPrefix(s, vmi.CPUVendorLabelPrefix) {
		copyPrefixed(s, vmi.CPUVendorLabelPrefix, m.Source, vmi.CPUVendorLabelPrefix)
	}
	if cpu == nil || cpu.Model != vmi.CPUModelHost {
		return
	}
	if hasPrefix(m.Kept, vmi.CPUMigrationLabelPrefix) {
		copyPrefixed(s, vmi.CPUMigrationLabelPrefix, m.Kept, vmi.CPUMigrationLabelPrefix)
		copyPrefixed(s, vmi.CPUFeatureLabelPrefix, m.Kept, vmi.CPUFeatureLabelPrefix)
		return
	}
	copyPrefixed(s, vmi.CPUMigrationLabelPrefix, m.Source, vmi.HostModelLabelPrefix)
	copyPrefixed(s, vmi.CPUFeatureLabelPrefix, m.Source, vmi.HostModelFeatureLabelPrefix)
}

func hasPrefix(labels map[string]string, prefix string) bool {
	for k := range labels {
		if strings.HasPrefix(k, prefix) {
			return true
		}
	}
	return false
}

// copyPrefixed copies the labels with one prefix, with another in its place.
func copyPrefixed(to map[string]string, with string, from map[string]string, prefix string) {
	for k, v := range from {
		if name, ok := strings.CutPrefix(k, prefix); ok {
			to[with+name] = v
		}
	}
}
