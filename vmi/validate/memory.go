package validate

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/internal/vmi/quantity"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// minMemory is the least memory that a guest or a request may have.
var minMemory = resource.MustParse("1M")

// maxCPU is the most that a VMI can ask for, which is more than any node has. Sums of
// requests in thousandths overflow in the scheduler otherwise, and the pod fits
// everywhere. Of memory a pod asks for no more than any node has, and the scheduler says
// that there is no such node.
var maxCPU = resource.MustParse("1M")

// tooLarge refuses what no node has of CPUs.
func tooLarge(at *field.Path, d *vmi.DomainSpec) field.ErrorList {
	var l field.ErrorList
	for _, r := range []struct {
		list corev1.ResourceList
		at   *field.Path
	}{{d.Resources.Requests, at.Child("resources", "requests")}, {d.Resources.Limits, at.Child("resources", "limits")}} {
		l = append(l, tooMuch(r.at.Child("cpu"), r.list[corev1.ResourceCPU], maxCPU)...)
	}
	return l
}

// tooMuch refuses a quantity of which no node has so much. One that is out of all
// bounds is refused already.
func tooMuch(at *field.Path, q, most resource.Quantity) field.ErrorList {
	if len(quantity.Faults(nil, q)) > 0 || q.Cmp(most) <= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, q.String(), "must be at most "+most.String()+": no node has more, and the sums of the scheduler would overflow")}
}

// memory checks the guest's memory and what is asked of the node for it.
func memory(at *field.Path, d *vmi.DomainSpec, lim Limits) field.ErrorList {
	res := at.Child("resources")
	l := amounts(res, d, corev1.ResourceMemory)
	if r, ok := d.Resources.Requests[corev1.ResourceMemory]; ok && r.Sign() > 0 && r.Cmp(minMemory) < 0 {
		l = append(l, field.Invalid(res.Child("requests", "memory"), r.String(), "must be at least "+minMemory.String()))
	}
	l = append(l, hugepages(at, d)...)
	l = append(l, growth(at, d)...)
	return append(l, guestMemory(at, d, lim)...)
}

func guestMemory(at *field.Path, d *vmi.DomainSpec, lim Limits) field.ErrorList {
	if d.Memory == nil || d.Memory.Guest == nil {
		return nil
	}
	var l field.ErrorList
	guest, g := at.Child("memory", "guest"), *d.Memory.Guest
	if g.Cmp(minMemory) < 0 {
		l = append(l, tooLittle(at, d, g)...)
	}
	limit, limited := d.Resources.Limits[corev1.ResourceMemory]
	request, asked := d.Resources.Requests[corev1.ResourceMemory]
	// A request below the limit states that the guest will not use all
	// that it sees.
	overcommitted := asked && request.Cmp(limit) < 0 && !lim.NoLiveUpdate
	if limited && limit.Sign() > 0 && g.Cmp(limit) > 0 && !overcommitted {
		l = append(l, field.Invalid(guest, g.String(), "must not be more than the memory limit, "+limit.String()))
	}
	return l
}

// tooLittle reports a guest's memory where it was said: it follows from the
// request, the limit or the huge pages if nothing else is.
func tooLittle(at *field.Path, d *vmi.DomainSpec, guest resource.Quantity) field.ErrorList {
	here := at.Child("memory", "guest")
	request, limit := d.Resources.Requests[corev1.ResourceMemory], d.Resources.Limits[corev1.ResourceMemory]
	var page resource.Quantity
	if h := d.Memory.Hugepages; h != nil {
		page, _ = quantity.Parse(h.PageSize)
	}
	switch {
	case !request.IsZero() && request.Cmp(guest) == 0:
		// The request is refused already.
		return nil
	case !limit.IsZero() && limit.Cmp(guest) == 0:
		here = at.Child("resources", "limits", "memory")
	case !page.IsZero() && page.Cmp(guest) == 0:
		here = at.Child("memory", "hugepages", "pageSize")
	}
	return field.ErrorList{field.Invalid(here, guest.String(), "a guest needs at least "+minMemory.String())}
}

// hugepages checks that the memory fills whole pages. The fault is reported where the
// memory was said: it follows from the request or the limit if nothing else is.
func hugepages(at *field.Path, d *vmi.DomainSpec) field.ErrorList {
	if d.Memory == nil || d.Memory.Hugepages == nil {
		return nil
	}
	size, text := at.Child("memory", "hugepages", "pageSize"), d.Memory.Hugepages.PageSize
	page, err := quantity.Parse(text)
	if err != nil {
		return field.ErrorList{field.Invalid(size, text, "must be a size, such as 2Mi or 1Gi")}
	}
	if page.Sign() <= 0 {
		return field.ErrorList{field.Invalid(size, text, "must be more than 0")}
	}
	if n := page.Value(); n&(n-1) != 0 && page.Cmp(minMemory) >= 0 {
		return field.ErrorList{field.Invalid(size, text, "must be a power of two, as the sizes of pages are: 2Mi or 1Gi")}
	}
	res, request, guest := at.Child("resources"), d.Resources.Requests[corev1.ResourceMemory], d.GuestMemory()
	limit := d.Resources.Limits[corev1.ResourceMemory]
	l := wholePages(res.Child("requests", "memory"), request, page, text)
	switch {
	case guest.Cmp(request) == 0:
	case request.IsZero() && guest.Cmp(limit) == 0:
		l = append(l, wholePages(res.Child("limits", "memory"), guest, page, text)...)
	default:
		l = append(l, wholePages(at.Child("memory", "guest"), guest, page, text)...)
	}
	return l
}

func wholePages(at *field.Path, have, page resource.Quantity, text string) field.ErrorList {
	switch {
	case have.IsZero():
	case have.Cmp(page) < 0:
		return field.ErrorList{field.Invalid(at, have.String(), "the memory must be at least one huge page of "+text)}
	case have.Value()%page.Value() != 0:
		return field.ErrorList{field.Invalid(at, have.String(), "the memory must be a multiple of the huge pages' size, "+text)}
	}
	return nil
}

// amounts checks that neither request nor limit of a resource is negative and
// that the request is not above the limit.
func amounts(at *field.Path, d *vmi.DomainSpec, name corev1.ResourceName) field.ErrorList {
	var l field.ErrorList
	req, hasReq := d.Resources.Requests[name]
	lim, hasLim := d.Resources.Limits[name]
	if bad(req) {
		hasReq = false
	}
	if bad(lim) {
		hasLim = false
	}
	if hasReq && req.Sign() < 0 {
		l = append(l, field.Invalid(at.Child("requests", string(name)), req.String(), "must not be negative"))
	}
	if hasLim && lim.Sign() < 0 {
		l = append(l, field.Invalid(at.Child("limits", string(name)), lim.String(), "must not be negative"))
	}
	if hasReq && hasLim && lim.Sign() > 0 && req.Cmp(lim) > 0 {
		l = append(l, field.Invalid(at.Child("requests", string(name)), req.String(), "must not be more than the limit, "+lim.String()))
	}
	return l
}

// growth checks that a guest starts with no more memory than it may have.
func growth(at *field.Path, d *vmi.DomainSpec) field.ErrorList {
	if m := d.Memory; m != nil && m.MaxGuest != nil && m.Guest != nil && m.Guest.Cmp(*m.MaxGuest) > 0 {
		return field.ErrorList{field.Invalid(at.Child("memory", "guest"), m.Guest.String(), "must not be more than memory.maxGuest, "+m.MaxGuest.String())}
	}
	return nil
}

// The size of the pieces in which memory is added, and the memory that a VMI
// must have for it, in bytes.
const (
	memoryBlock   = 2 << 20
	memoryMinimum = 1 << 30
)

// memoryHotplug checks that memory can be added to a VMI that asks for it.
func memoryHotplug(at *field.Path, s *vmi.VirtualMachineInstanceSpec, lim Limits) field.ErrorList {
	m := s.Domain.Memory
	if m == nil || m.MaxGuest == nil {
		return nil
	}
	guest := at.Child("domain", "memory", "guest")
	fault := func(v any, message string) *field.Error { return field.Invalid(guest, v, message) }
	if a := lim.architecture(s.Architecture); a != defaults.AMD64 {
		return field.ErrorList{fault(field.OmitValueType{}, "memory.maxGuest is for amd64 VMIs only, this one is "+a)}
	}
	if c := s.Domain.CPU; c != nil && c.NUMA != nil && c.NUMA.GuestMappingPassthrough != nil {
		return field.ErrorList{fault(field.OmitValueType{}, "memory cannot be added to a VMI with cpu.numa.guestMappingPassthrough: leave memory.maxGuest out")}
	}
	if s.Domain.LaunchSecurity != nil {
		return field.ErrorList{fault(field.OmitValueType{}, "memory cannot be added to a VMI with launchSecurity: leave memory.maxGuest out")}
	}
	if m.Guest == nil {
		return field.ErrorList{fault(field.OmitValueType{}, "must be set if memory.maxGuest is")}
	}
	var l field.ErrorList
	block := resource.NewQuantity(memoryBlock, resource.BinarySI)
	if m.Hugepages != nil {
		if q, err := quantity.Parse(m.Hugepages.PageSize); err == nil && q.Cmp(*block) > 0 {
			block = &q
		}
	}
	if m.Guest.Value() < memoryMinimum {
		l = append(l, fault(m.Guest.String(), "must be at least 1Gi if memory.maxGuest is set"))
	}
	if m.MaxGuest.Value()%block.Value() != 0 {
		l = append(l, fault(m.MaxGuest.String(), "memory.maxGuest must be a multiple of "+block.String()))
	}
	if m.Guest.Value()%block.Value() != 0 {
		l = append(l, fault(m.Guest.String(), "must be a multiple of "+block.String()+" if memory.maxGuest is set"))
	}
	return l
}
