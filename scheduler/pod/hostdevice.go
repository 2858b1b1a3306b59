package pod

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// named is a device of the node that a VMI asks for, and the field that says so.
type named struct {
	at       *field.Path
	resource string
}

// hostDevices are the devices of the node that a VMI asks for.
func hostDevices(d *vmi.DomainSpec) []named {
	at := field.NewPath("spec", "domain", "devices")
	var all []named
	for i, g := range d.Devices.GPUs {
		all = append(all, named{at.Child("gpus").Index(i).Child("deviceName"), g.DeviceName})
	}
	for i, h := range d.Devices.HostDevices {
		all = append(all, named{at.Child("hostDevices").Index(i).Child("deviceName"), h.DeviceName})
	}
	return all
}

// unpermitted are the devices that the cluster's configuration does not permit. A pod
// may have any: but what a device plugin offers to pods may not be meant for guests,
// which have all of a device.
func unpermitted(d *vmi.DomainSpec, c Config) field.ErrorList {
	var l field.ErrorList
	for _, n := range hostDevices(d) {
		if n.resource != "" && !c.Cluster.Pods.HostDevices[n.resource] {
			l = append(l, field.Forbidden(n.at, "the cluster's configuration does not permit "+n.resource+": name it in spec.configuration.permittedHostDevices of the KubeVirt, "+
				"or name one that is there"))
		}
	}
	return l
}

// addHostDevices asks for the devices.
func addHostDevices(d *vmi.DomainSpec, limits corev1.ResourceList) {
	one := resource.MustParse("1")
	for _, n := range hostDevices(d) {
		if n.resource == "" {
			continue
		}
		q := limits[corev1.ResourceName(n.resource)]
		q.Add(one)
		limits[corev1.ResourceName(n.resource)] = q
	}
}
