package validate

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/internal/vmi/quantity"
	"github.com/podvisor/podvisor/vmi"
)

// resources checks the resources beside memory and CPUs, as an API server checks those of
// the pod, which has them as they are.
func resources(at *field.Path, r vmi.ResourceRequirements) field.ErrorList {
	var l field.ErrorList
	for _, part := range []struct {
		at   *field.Path
		list corev1.ResourceList
	}{{at.Child("requests"), r.Requests}, {at.Child("limits"), r.Limits}} {
		for _, name := range slices.Sorted(maps.Keys(part.list)) {
			if name == corev1.ResourceMemory || name == corev1.ResourceCPU {
				continue
			}
			l = append(l, amount(part.at.Key(string(name)), name, part.list[name])...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		request, limit := r.Requests[name], r.Limits[name]
		whole := name != corev1.ResourceMemory && name != corev1.ResourceCPU && name != corev1.ResourceEphemeralStorage
		_, limited := r.Limits[name]
		switch here := at.Child("requests").Key(string(name)); {
		case name == corev1.ResourceMemory || name == corev1.ResourceCPU || bad(request) || bad(limit):
		case whole && !limited:
			l = append(l, field.Required(at.Child("limits").Key(string(name)), "must be set, to the request: a node gives such a resource to one pod"))
		case whole && request.Cmp(limit) != 0:
			l = append(l, field.Invalid(here, request.String(), "must equal the limit, "+limit.String()+": a node gives such a resource to one pod"))
		case limited && request.Cmp(limit) > 0:
			l = append(l, field.Invalid(here, request.String(), "must not be more than the limit, "+limit.String()))
		}
	}
	return l
}

// bad says that a quantity is out of all bounds, which is said elsewhere.
func bad(q resource.Quantity) bool { return len(quantity.Faults(nil, q)) > 0 }

// amount checks a resource of a node and how much of it is asked for.
func amount(at *field.Path, name corev1.ResourceName, q resource.Quantity) field.ErrorList {
	text := string(name)
	l := invalid(at, text, validation.IsQualifiedName(text))
	page, huge := strings.CutPrefix(text, corev1.ResourceHugePagesPrefix)
	prefix, _, qualified := strings.Cut(text, "/")
	switch {
	case len(l) > 0 || bad(q):
		return l
	case !qualified && !huge && name != corev1.ResourceEphemeralStorage:
		return append(l, field.Invalid(at, text, "must be memory, cpu, ephemeral-storage, hugepages- and a size, or a resource of a device plugin, such as example.com/device"))
	case qualified && strings.HasPrefix(text, corev1.DefaultResourceRequestsPrefix):
		return append(l, field.Invalid(at, text, "is a quota's name of a resource: leave "+corev1.DefaultResourceRequestsPrefix+" out"))
	case q.Sign() < 0:
		return append(l, field.Invalid(at, q.String(), "must not be negative"))
	}
	if qualified && !strings.HasSuffix(prefix, "kubernetes.io") && q.MilliValue()%1000 != 0 {
		l = append(l, field.Invalid(at, q.String(), "must be a whole number"))
	}
	if huge {
		size, err := quantity.Parse(page)
		switch {
		case err != nil || size.Sign() <= 0:
			l = append(l, field.Invalid(at, text, "must end with the size of a page, as in hugepages-2Mi"))
		case q.MilliValue()%1000 != 0 || q.Value()%size.Value() != 0:
			l = append(l, field.Invalid(at, q.String(), "must be a multiple of the pages' size, "+page))
		}
	}
	return l
}
