package instance

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
)

// missingClaims says which claims of the VMI do not exist.
func missingClaims(o Observed) (vmi.Finding, bool) {
	var missing []string
	for i := range o.VMI.Spec.Volumes {
		v := &o.VMI.Spec.Volumes[i]
		name := v.Claim()
		if name == "" {
			continue
		}
		switch c := o.Claims[name]; {
		case c == nil:
			missing = append(missing, fmt.Sprintf("volume %s: PersistentVolumeClaim %s does not exist in namespace %s", v.Name, name, o.VMI.Namespace))
		case c.DeletionTimestamp != nil: // no scheduler gives a pod with it a node
			missing = append(missing, fmt.Sprintf("volume %s: PersistentVolumeClaim %s in namespace %s is being deleted", v.Name, name, o.VMI.Namespace))
		}
	}
	if len(missing) == 0 {
		return vmi.Finding{}, false
	}
	return vmi.Finding{Reason: FailedPvcNotFound, Message: strings.Join(missing, "; ") + ": create it, and the VMI starts"}, true
}

// stateClaim creates the claim for what outlasts the VMI besides its disks, if it needs
// one and there is none, or says why the one that is there cannot be it.
func stateClaim(o Observed) ([]scheduler.Action, *vmi.Finding) {
	if !o.VMI.Spec.Domain.KeepsState() {
		return nil, nil
	}
	claim := pod.StateClaim(o.VMI, o.Config)
	there := o.startState()
	if there == nil {
		there = o.Claims[claim.Name]
	}
	if there == nil {
		return []scheduler.Action{scheduler.CreateClaim{Claim: claim}}, nil
	}
	if fault := stateClaimFault(there, claim.Labels[vmi.StateLabel]); fault != "" {
		return nil, &vmi.Finding{Reason: StateClaimUnusable, Message: fmt.Sprintf(
			"PersistentVolumeClaim %s, which the persistent state of the VMI's firmware or TPM needs, %s: delete it if nothing needs it, and another is created", there.Name, fault)}
	}
	return nil, nil
}

// stateClaimFault says why the claim that is there cannot hold the state of the VMI with
// this label, or is empty if it can.
func stateClaimFault(c *corev1.PersistentVolumeClaim, label string) string {
	switch m := c.Spec.VolumeMode; {
	case c.Labels[vmi.StateLabel] != label:
		return "has not the label " + vmi.StateLabel + "=" + label + " of a claim for the state of this VMI"
	case m != nil && *m != corev1.PersistentVolumeFilesystem:
		return "has no file system"
	case c.DeletionTimestamp != nil:
		return "is being deleted"
	}
	return ""
}

// filesystemOverhead is the share of a claim that a file system needs for itself, the
// default of CDI.
const filesystemOverhead = "0.055"

// preallocation is CDI's annotation of a claim whose disk has all its space.
const preallocation = "cdi.kubevirt.io/storage.preallocation"

// claimStatus are the volumes in claims, with what is known of the claims.
func claimStatus(o Observed) []vmi.VolumeStatus {
	var out []vmi.VolumeStatus
	for i := range o.VMI.Spec.Volumes {
		v := &o.VMI.Spec.Volumes[i]
		if c := o.Claims[v.Claim()]; c != nil {
			out = append(out, vmi.VolumeStatus{Name: v.Name, PersistentVolumeClaimInfo: claimInfo(c)})
		}
	}
	return out
}

// claimsGrew writes the sizes of claims that have grown since they were written, from
// which the launcher learns that their disks may.
func claimsGrew(o Observed) scheduler.Plan {
	grown := map[int]*corev1.PersistentVolumeClaim{}
	for i, s := range o.VMI.Status.VolumeStatus {
		info := s.PersistentVolumeClaimInfo
		if info == nil {
			continue
		}
		if c := o.Claims[info.ClaimName]; c != nil && c.Status.Capacity.Storage().Cmp(*info.Capacity.Storage()) > 0 {
			grown[i] = c
		}
	}
	if len(grown) == 0 {
		return scheduler.Plan{} // the rest of the status is virt-handler's
	}
	return write(o, func(s *vmi.VirtualMachineInstanceStatus, _ metav1.Time) {
		for i, c := range grown {
			s.VolumeStatus[i].PersistentVolumeClaimInfo = claimInfo(c)
		}
	})
}

func claimInfo(c *corev1.PersistentVolumeClaim) *vmi.PersistentVolumeClaimInfo {
	info := &vmi.PersistentVolumeClaimInfo{
		ClaimName:   c.Name,
		AccessModes: slices.Clone(c.Spec.AccessModes),
		VolumeMode:  new(corev1.PersistentVolumeFilesystem),
		Capacity:    c.Status.Capacity.DeepCopy(),
		Requests:    c.Spec.Resources.Requests.DeepCopy(),
		// What CDI writes on a claim whose space it has taken.
		Preallocated: c.Annotations[preallocation] == "true",
	}
	if c.Spec.VolumeMode != nil {
		*info.VolumeMode = *c.Spec.VolumeMode
	}
	if *info.VolumeMode == corev1.PersistentVolumeFilesystem {
		info.FilesystemOverhead = new(filesystemOverhead)
	}
	return info
}
