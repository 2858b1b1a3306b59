package instance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
)

// Sharer is another VMI with a volume in a claim of this one.
type Sharer struct {
	// VMI is that VMI. Without a UID it does not exist any more, and only its pod is left.
	VMI *vmi.VirtualMachineInstance
	// Pod is a pod of it that has not ended, on a node that is not fenced. Nil: there
	// is none. A guest may run whose pod was removed: the status of the VMI says so.
	Pod *corev1.Pod
	// Removed is when the Pod was removed while its launcher ran. Its VMI does not exist, and
	// its guest may still run on the Node. Zero: the Pod exists.
	Removed time.Time
	Node    Node
}

// claimsInUse says which claims other VMIs use so that this one must wait: QEMU would
// not open the disk, or, on a block device, both guests would destroy its content.
func claimsInUse(o Observed) (vmi.Finding, bool) {
	var used []string
	sharers := slices.DeleteFunc(slices.Clone(o.Sharers), func(s Sharer) bool { return s.hasEnded(o.Now) })
	for _, mine := range uses(o.VMI, o.Config.VolumeKinds) {
		for _, s := range sharers {
			for _, its := range uses(s.VMI, o.Config.VolumeKinds) {
				if mine.conflicts(its) && s.precedes(o.VMI) {
					used = append(used, fmt.Sprintf("volume %s: PersistentVolumeClaim %s is a %s of %s", mine.volume, mine.claim, its.kind(), s.name()))
				}
			}
		}
	}
	if len(used) == 0 {
		return vmi.Finding{}, false
	}
	return vmi.Finding{Reason: ClaimInUse, Message: strings.Join(used, "; ") +
		", and only one VMI at a time may write to a claim: stop that VMI, and this one starts, or use another claim"}, true
}

// hasEnded says that the guest has ended of a pod that was removed while its launcher ran: the
// kubelet ends it within the grace period of the pod, counted from when the node is ready.
func (s Sharer) hasEnded(now time.Time) bool {
	switch {
	case s.Removed.IsZero():
		return false
	case fenced(s.Node):
		return true
	case unresponsive(s.Node):
		return false
	}
	at := s.Removed
	if back := nodeReady(s.Node.Object).LastTransitionTime.Time; back.After(at) && back.Before(now) {
		at = back
	}
	grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if p := s.Pod.Spec.TerminationGracePeriodSeconds; p != nil {
		grace = *p
	}
	return !now.Before(at.Add(time.Duration(grace)*time.Second + settleTime))
}

// name says who uses a claim.
func (s Sharer) name() string {
	if !s.Removed.IsZero() {
		return fmt.Sprintf("VMI %s, which does not exist any more, and whose pod %s was removed while its guest ran on node %s, which ends it within its grace period "+
			"when it is ready", s.VMI.Name, s.Pod.Name, s.Pod.Spec.NodeName)
	}
	if s.VMI.UID == "" && s.Pod != nil {
		return fmt.Sprintf("VMI %s, which does not exist any more, and whose pod %s ends when its guest has powered off", s.VMI.Name, s.Pod.Name)
	}
	return "VMI " + s.VMI.Name
}

// use is how a VMI uses a claim.
type use struct {
	volume, claim string
	writes        bool
	shares        bool // with other writers that share it too
	folder        bool // it is a file system and no disk
}

// conflicts says that the two cannot use the claim at a time. Two that have it as a file
// system are to it what two pods are.
func (u use) conflicts(other use) bool {
	return u.claim == other.claim && (u.writes || other.writes) && (!u.shares || !other.shares) && (!u.folder || !other.folder)
}

// kind is what the claim is to the VMI.
func (u use) kind() string {
	if u.folder {
		return "file system"
	}
	return "disk"
}

// uses are those of the claims that volumes of these kinds are in.
func uses(v *vmi.VirtualMachineInstance, kinds []volume.Kind) []use {
	shared, disk, folder := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, d := range v.Spec.Domain.Devices.Disks {
		disk[d.Name], shared[d.Name] = true, d.Shareable != nil && *d.Shareable
	}
	for _, f := range v.Spec.Domain.Devices.Filesystems {
		folder[f.Name] = !disk[f.Name]
	}
	var out []use
	for i := range v.Spec.Volumes {
		s := v.Spec.Volumes[i]
		if k, err := volume.Of(s, kinds); err == nil && k.Claim != nil && k.Claim(s).Name != "" {
			c := k.Claim(s)
			out = append(out, use{volume: s.Name, claim: c.Name, writes: !c.ReadOnly, shares: shared[s.Name], folder: folder[s.Name]})
		}
	}
	return out
}

// precedes says that the VMI v waits for s. It waits for one that has a pod. Of two
// that have none, the younger waits, unless the other one says why it does not start.
func (s Sharer) precedes(v *vmi.VirtualMachineInstance) bool {
	switch phase := s.VMI.Status.Phase; {
	case s.Pod != nil, handedOver(s.VMI), s.VMI.Status.Uncertain():
		return true // its guest may run, also without a pod
	case phase.Final() || s.VMI.DeletionTimestamp != nil:
		return false
	case phase != vmi.PhaseUnset && phase != vmi.PhasePending:
		return true
	}
	c := s.VMI.Status.Condition(vmi.ConditionSynchronized)
	if c != nil && c.Status == corev1.ConditionFalse && c.Reason != ClaimInUse {
		return false
	}
	a, b := s.VMI.CreationTimestamp, v.CreationTimestamp
	if a.Equal(&b) {
		return s.VMI.UID < v.UID
	}
	return a.Before(&b)
}
