package handler

import (
	"bytes"
	"encoding/json"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// put adds a Put of what is desired now, unless that is in force. It says whether
// it did.
func (p *Plan) put(o Observed, stop *protocol.Stop) bool {
	d := protocol.Desired{Instance: forLauncher(o.Instance, o.Node), Interfaces: attachments(o.Session.Network), Settings: o.Settings, Role: o.Pod.Role, Stop: stop}
	if last := o.Session.Put; last != nil {
		d.Generation = last.Generation
		if same(*last, d) {
			return false
		}
	}
	d.Generation = o.Session.Generation + 1
	p.Actions = append(p.Actions, Put{d})
	return true
}

// same says that two Desired are the same for a launcher, which sees their JSON. The
// places of devices count for a domain that is yet to be created: that they were
// reported is no change. That a claim has grown is one.
func same(a, b protocol.Desired) bool {
	a.Instance, b.Instance = withoutPlaces(a.Instance), withoutPlaces(b.Instance)
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func withoutPlaces(v *vmi.VirtualMachineInstance) *vmi.VirtualMachineInstance {
	out := *v
	out.Status = vmi.VirtualMachineInstanceStatus{}
	for _, s := range v.Status.VolumeStatus {
		if s.PersistentVolumeClaimInfo != nil {
			out.Status.VolumeStatus = append(out.Status.VolumeStatus, vmi.VolumeStatus{Name: s.Name, PersistentVolumeClaimInfo: s.PersistentVolumeClaimInfo})
		}
	}
	return &out
}

// forLauncher is the part of a VMI that a launcher on the node needs. Of the status these are the
// places of its disks and what is known of their claims. The label by which the VMI moves is there
// only if it moves to this node.
func forLauncher(v *vmi.VirtualMachineInstance, node string) *vmi.VirtualMachineInstance {
	labels := v.Labels
	if to, ok := labels[vmi.MigrationTargetNodeLabel]; ok && to != node {
		labels = maps.Clone(labels)
		delete(labels, vmi.MigrationTargetNodeLabel)
	}
	return &vmi.VirtualMachineInstance{
		TypeMeta: metav1.TypeMeta{APIVersion: vmi.GroupVersion.String(), Kind: vmi.VirtualMachineInstances.Kind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v.Namespace, Name: v.Name, UID: v.UID, Labels: labels, Annotations: v.Annotations,
		},
		Spec:   v.Spec,
		Status: vmi.VirtualMachineInstanceStatus{VolumeStatus: places(v.Status.VolumeStatus)},
	}
}

// places are the places of the disks whose places are known, and their claims.
func places(status []vmi.VolumeStatus) []vmi.VolumeStatus {
	var known []vmi.VolumeStatus
	for _, s := range status {
		if s.Target != "" || s.PersistentVolumeClaimInfo != nil {
			known = append(known, vmi.VolumeStatus{Name: s.Name, Target: s.Target, PersistentVolumeClaimInfo: s.PersistentVolumeClaimInfo})
		}
	}
	return known
}

func attachments(n *Network) []network.Attachment {
	if n == nil {
		return nil
	}
	return n.Attachments
}
