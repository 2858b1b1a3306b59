package validate

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// minMemory is the least memory that a guest or a request may have.
var minMemory = resource.MustParse("1M")

// memory checks the guest's memory and what is asked of the node for it.
func memory(at *field.Path, d *vmi.DomainSpec) field.ErrorList {
	res, guest := at.Child("resources"), at.Child("memory", "guest")
	l := amounts(res, d, corev1.ResourceMemory)
	if m := d.GuestMemory(); m.IsZero() {
		return append(l, field.Required(guest, "say how much memory the guest sees, here or in resources.requests.memory"))
	}
	if r, ok := d.Resources.Requests[corev1.ResourceMemory]; ok && r.Sign() >= 0 && r.Cmp(minMemory) < 0 {
		l = append(l, field.Invalid(res.Child("requests", "memory"), r.String(), "must be at least "+minMemory.String()))
	}
	if d.Memory == nil || d.Memory.Guest == nil {
		return l
	}
	g := *d.Memory.Guest
	if g.Cmp(minMemory) < 0 {
		l = append(l, field.Invalid(guest, g.String(), "must be at least "+minMemory.String()))
	}
	// Who asks for less than the limit has said that the guest will not use all
	// that it sees.
	lim, limited := d.Resources.Limits[corev1.ResourceMemory]
	req, asked := d.Resources.Requests[corev1.ResourceMemory]
	if limited && g.Cmp(lim) > 0 && (!asked || req.Cmp(lim) >= 0) {
		l = append(l, field.Invalid(guest, g.String(), "must not be more than the memory limit, "+lim.String()))
	}
	return l
}

// maxVCPUs is the largest number of processors that a q35 machine has.
const maxVCPUs = 288

// cpu checks the number of processors and what is asked of the node for them.
func cpu(at *field.Path, d *vmi.DomainSpec) field.ErrorList {
	l := amounts(at.Child("resources"), d, corev1.ResourceCPU)
	if c := d.CPU; c != nil {
		// In 64 bits, so that a product of three large numbers is not a small one.
		n := uint64(max(c.Cores, 1)) * uint64(max(c.Sockets, 1))
		if t := uint64(max(c.Threads, 1)); n > maxVCPUs || n*t > maxVCPUs {
			l = append(l, field.Invalid(at.Child("cpu"), "sockets × cores × threads", "must not be more than 288 processors"))
		}
	}
	return l
}

// amounts checks that neither request nor limit of a resource is negative and
// that the request is not above the limit.
func amounts(at *field.Path, d *vmi.DomainSpec, name corev1.ResourceName) field.ErrorList {
	var l field.ErrorList
	req, hasReq := d.Resources.Requests[name]
	lim, hasLim := d.Resources.Limits[name]
	if hasReq && req.Sign() < 0 {
		l = append(l, field.Invalid(at.Child("requests", string(name)), req.String(), "must not be negative"))
	}
	if hasLim && lim.Sign() < 0 {
		l = append(l, field.Invalid(at.Child("limits", string(name)), lim.String(), "must not be negative"))
	}
	if hasReq && hasLim && req.Cmp(lim) > 0 {
		l = append(l, field.Invalid(at.Child("requests", string(name)), req.String(), "must not be more than the limit, "+lim.String()))
	}
	return l
}
