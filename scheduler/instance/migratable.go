package instance

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/network/cni"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
)

// Movable is what says whether a VMI can move to another node: the kinds of what it is
// made of. The zero value is those that are built in.
type Movable struct {
	// Bindings are how interfaces are bound. Nil: [network.Bindings].
	Bindings []network.Binding
	// Traits are those of the parts of a VMI. Nil: [vmi.Traits].
	Traits []vmi.Trait
	// VolumeKinds are the kinds of volumes. Nil: [volume.Kinds].
	VolumeKinds []volume.Kind
}

// notMigratable is the reason of a VMI whose volumes cannot move while it runs.
const notMigratable = "NotMigratable"

// LiveMigratable returns the condition that says whether v can move to another node
// while it runs. Its reason is the first that there is against it: of interfaces, of
// parts, of volumes. What the networks gave its pod is not known here.
func (m Movable) LiveMigratable(v *vmi.VirtualMachineInstance) vmi.Condition {
	return m.liveMigratable(v, nil)
}

func (m Movable) liveMigratable(v *vmi.VirtualMachineInstance, further []vmi.Finding) vmi.Condition {
	c := vmi.Condition{Type: vmi.ConditionLiveMigratable, Status: corev1.ConditionTrue}
	if against := slices.Concat(m.interfaces(v), further, m.parts(v), m.volumes(v)); len(against) > 0 {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, against[0].Reason, against[0].Message
	}
	return c
}

// StorageLiveMigratable returns the condition that says whether the volumes of v can
// move to other claims while it runs: what v is in now does not count.
func (m Movable) StorageLiveMigratable(v *vmi.VirtualMachineInstance) vmi.Condition {
	c := vmi.Condition{Type: vmi.ConditionStorageLiveMigratable, Status: corev1.ConditionTrue}
	var texts []string
	for _, f := range slices.Concat(m.interfaces(v), m.parts(v)) {
		texts = append(texts, f.Reason+": "+f.Message)
	}
	if len(texts) > 0 {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, notMigratable, strings.Join(texts, ", ")
	}
	return c
}

// Method returns how v moves: with its memory alone, if both nodes have all that its disks
// are in, or with what is only in its pod.
func (m Movable) Method(v *vmi.VirtualMachineInstance) vmi.MigrationMethod {
	readOnly := map[string]bool{}
	for _, d := range v.Spec.Domain.Devices.Disks {
		readOnly[d.Name] = d.CDRom != nil && (d.CDRom.ReadOnly == nil || *d.CDRom.ReadOnly)
	}
	for _, vol := range v.Spec.Volumes {
		shared := vol.PersistentVolumeClaim != nil || vol.DataVolume != nil || readOnly[vol.Name]
		if !shared || m.keeps(v, vol) != "" {
			return vmi.BlockMigration
		}
	}
	return vmi.LiveMigration
}

// migratable writes whether and how the VMI moves. Its handler does not change that, but
// where the launcher is of a release that does not migrate.
func migratable(o Observed, s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
	m, v := Movable{Bindings: o.Config.Bindings, Traits: o.Config.Traits, VolumeKinds: o.Config.VolumeKinds}, o.VMI.DeepCopy()
	v.Status.VolumeStatus = s.VolumeStatus
	s.SetCondition(m.liveMigratable(v, addressed(v, o.Pods.Active)), now)
	s.SetCondition(m.StorageLiveMigratable(v), now)
	s.MigrationMethod = m.Method(v)
}

// addressed are the interfaces on networks that gave the pod an address. The pod on another
// node has another one there, and nothing else passes its filter: the guest, which keeps its
// own, would be mute.
func addressed(v *vmi.VirtualMachineInstance, p *corev1.Pod) []vmi.Finding {
	if p == nil {
		return nil
	}
	attached, err := cni.ParseStatus(p.Annotations[cni.StatusAnnotation])
	if err != nil {
		return nil
	}
	var all []vmi.Finding
	links := cni.Links(v)
	for _, n := range v.Spec.Networks {
		has := func(a cni.Attached) bool { return a.Link == links[n.Name] && !a.Default && len(a.Addresses) > 0 }
		if n.Multus != nil && links[n.Name] != "" && slices.ContainsFunc(attached, has) {
			all = append(all, vmi.Finding{Reason: vmi.ReasonInterfaceNotLiveMigratable,
				Message: fmt.Sprintf("interface %s: its network gives each pod an address of its own, which the guest does not keep in another pod: use a network without IPAM", n.Name)})
		}
	}
	return all
}

// interfaces are those on the pod network, whose guests would not go on at another pod.
func (m Movable) interfaces(v *vmi.VirtualMachineInstance) []vmi.Finding {
	var all []vmi.Finding
	for _, i := range v.Spec.Domain.Devices.Interfaces {
		onPod := slices.ContainsFunc(v.Spec.Networks, func(n vmi.Network) bool { return n.Name == i.Name && n.Pod != nil })
		if onPod && !network.TraitsOf(i, m.Bindings).Movable {
			all = append(all, vmi.Finding{Reason: vmi.ReasonInterfaceNotLiveMigratable,
				Message: fmt.Sprintf("interface %s: the guest has the pod network by the binding %s, with which it does not go on in another pod: use masquerade", i.Name, binding(i))})
		}
	}
	return all
}

func binding(i vmi.Interface) string {
	if i.Binding != nil {
		return i.Binding.Name
	}
	return strings.Join(i.Bindings(), " and ")
}

// parts are those that keep the guest on its node.
func (m Movable) parts(v *vmi.VirtualMachineInstance) []vmi.Finding {
	traits := m.Traits
	if traits == nil {
		traits = vmi.Traits()
	}
	var all []vmi.Finding
	for _, t := range traits {
		if t.Stays != "" && t.Has(v) {
			all = append(all, vmi.Finding{Reason: t.Stays, Message: t.Why + " (spec.domain." + t.Part + ")"})
		}
	}
	return all
}

// volumes are those that the pod on another node cannot have.
func (m Movable) volumes(v *vmi.VirtualMachineInstance) []vmi.Finding {
	var all []vmi.Finding
	for _, vol := range v.Spec.Volumes {
		if why := m.keeps(v, vol); why != "" {
			all = append(all, vmi.Finding{Reason: vmi.ReasonDisksNotLiveMigratable, Message: "volume " + vol.Name + ": " + why})
		}
	}
	return all
}

// keeps says why a volume keeps the guest on its node. Empty: it does not.
func (m Movable) keeps(v *vmi.VirtualMachineInstance, vol vmi.Volume) string {
	k, err := volume.Of(vol, m.VolumeKinds)
	switch {
	case err != nil:
		return err.Error()
	case !k.Migratable:
		return "what is of the kind " + k.Name + " is on one node"
	case k.Claim == nil:
		return ""
	}
	c := k.Claim(vol)
	modes := accessModes(v, vol.Name)
	switch {
	case len(modes) == 0:
		return "the access modes of the claim " + c.Name + " are not known"
	case slices.Contains(modes, corev1.ReadWriteMany), c.ReadOnly && slices.Contains(modes, corev1.ReadOnlyMany):
		return ""
	}
	return "the claim " + c.Name + " has not the access mode ReadWriteMany, with which the pods of two nodes have it at once"
}

// accessModes are those of the claim of a volume, as the status says.
func accessModes(v *vmi.VirtualMachineInstance, name string) []corev1.PersistentVolumeAccessMode {
	for _, s := range v.Status.VolumeStatus {
		if s.Name == name && s.PersistentVolumeClaimInfo != nil {
			return s.PersistentVolumeClaimInfo.AccessModes
		}
	}
	return nil
}
