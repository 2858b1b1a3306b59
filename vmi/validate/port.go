package validate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// specOf is the path of the spec that a device belongs to, under which KubeVirt
// reports faults of private DHCP options.
func specOf(device *field.Path) string {
	spec, _, _ := strings.Cut(device.String(), ".domain.")
	return spec
}

const maxPort = 65535

const portForm = "must be from 1 to 65535"

// ports checks the ports that are forwarded from the pod network. On others all
// ports reach the guest, and these are only read.
func ports(at *field.Path, n *vmi.Interface, lim Limits) field.ErrorList {
	var l field.ErrorList
	name, seen := at.Child("name").String(), map[string]bool{}
	for i := range n.Ports {
		l = append(l, port(at.Child("ports").Index(i), &n.Ports[i], seen)...)
	}
	if len(n.PortRanges) == 0 {
		return l
	}
	list := at.Child("portRanges")
	if !lim.Features.PortRanges {
		return append(l, field.Invalid(list, n.Name, "ranges of ports are switched off in this cluster's configuration: list the ports in ports"))
	}
	if len(n.Ports) > 0 {
		l = append(l, as(name, field.Invalid(list, n.Name, "excludes ports: write each port as a range of one")))
	}
	if n.Masquerade == nil {
		l = append(l, as(name, field.Invalid(list, n.Name, "needs the binding masquerade: with others all ports reach the guest, leave it out")))
	}
	return append(l, portRanges(list, n.PortRanges)...)
}

func port(at *field.Path, p *vmi.Port, seen map[string]bool) field.ErrorList {
	var l field.ErrorList
	switch {
	case p.Port == 0:
		l = append(l, field.Required(at.Child("port"), portForm))
	case p.Port < 0 || p.Port > maxPort:
		l = append(l, field.Invalid(at.Child("port"), p.Port, portForm))
	}
	l = append(l, oneOf(at.Child("protocol"), p.Protocol, vmi.ProtocolTCP, vmi.ProtocolUDP)...)
	if p.Name == "" {
		return l
	}
	l = append(l, invalid(at.Child("name"), p.Name, validation.IsValidPortName(p.Name))...)
	if seen[p.Name] {
		l = append(l, repeated(at.Child("name"), p.Name, "port of the interface"))
	}
	seen[p.Name] = true
	return l
}

// maxPortRanges is how many ranges an interface has at most.
const maxPortRanges = 10

func portRanges(at *field.Path, all []vmi.PortRange) field.ErrorList {
	var l field.ErrorList
	if len(all) > maxPortRanges {
		l = append(l, field.Invalid(at, plural(len(all), "range"), fmt.Sprintf("must be at most %d: join some of them", maxPortRanges)))
	}
	for i := range all {
		r, here := &all[i], at.Index(i)
		l = append(l, oneOf(here.Child("protocol"), r.Protocol, vmi.ProtocolTCP, vmi.ProtocolUDP)...)
		badStart, badEnd := r.Start < 1 || r.Start > maxPort, r.End < 1 || r.End > maxPort
		if badStart {
			l = append(l, field.Invalid(here.Child("start"), r.Start, portForm))
		}
		if badEnd {
			l = append(l, field.Invalid(here.Child("end"), r.End, portForm))
		}
		if !badStart && !badEnd && r.Start > r.End {
			l = append(l, field.Invalid(here.Child("start"), r.Start, fmt.Sprintf("must not be more than end, %d", r.End)))
		}
		for k := range i {
			if o := &all[k]; protocol(o) == protocol(r) && r.Start <= o.End && o.Start <= r.End {
				l = append(l, field.Invalid(at, fmt.Sprintf("%s %d-%d and %d-%d", protocol(r), o.Start, o.End, r.Start, r.End), "must not overlap: make one range of them"))
			}
		}
	}
	return l
}

func protocol(r *vmi.PortRange) string {
	if r.Protocol == "" {
		return vmi.ProtocolTCP
	}
	return r.Protocol
}
