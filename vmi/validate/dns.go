package validate

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// What a pod's DNS configuration holds at most.
const (
	maxNameservers    = 3
	maxSearches       = 6
	maxSearchesLength = 256
)

// The names by which KubeVirt reports the parts of a DNS configuration.
const (
	nameserversName = "nameservers"
	searchesName    = "searchDomains"
	optionsName     = "options"
)

func dns(at *field.Path, s *vmi.VirtualMachineInstanceSpec) field.ErrorList {
	l := dnsPolicy(at.Child("dnsPolicy"), s.DNSPolicy)
	conf, c := at.Child("dnsConfig"), s.DNSConfig
	if s.DNSPolicy == corev1.DNSNone {
		switch {
		case c == nil:
			return append(l, field.Required(conf, "dnsPolicy None takes name servers from here"))
		case len(c.Nameservers) == 0:
			return append(l, as(nameserversName, field.Required(conf.Child("nameservers"), "dnsPolicy None needs at least one name server")))
		}
	}
	if c == nil {
		return l
	}
	l = append(l, nameservers(conf.Child("nameservers"), c.Nameservers)...)
	l = append(l, searches(conf.Child("searches"), c.Searches)...)
	for i, o := range c.Options {
		if o.Name == "" {
			l = append(l, as(optionsName, field.Invalid(conf.Child("options").Index(i).Child("name"), o.Name, "name the option, such as ndots")))
		}
	}
	return l
}

func dnsPolicy(at *field.Path, p corev1.DNSPolicy) field.ErrorList {
	switch p {
	case "", corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet, corev1.DNSDefault, corev1.DNSNone:
		return nil
	}
	return field.ErrorList{field.NotSupported(at, p, []corev1.DNSPolicy{corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet, corev1.DNSDefault, corev1.DNSNone})}
}

func nameservers(at *field.Path, all []string) field.ErrorList {
	var l field.ErrorList
	if len(all) > maxNameservers {
		l = append(l, as(nameserversName, field.Invalid(at, all, fmt.Sprintf("must be at most %d name servers", maxNameservers))))
	}
	for i, s := range all {
		if a, err := netip.ParseAddr(s); err != nil || a.Zone() != "" {
			l = append(l, as(nameserversName, field.Invalid(at.Index(i), s, "must be an IP address, such as 10.96.0.10 or fd00::10")))
		}
	}
	return l
}

func searches(at *field.Path, all []string) field.ErrorList {
	var l field.ErrorList
	if len(all) > maxSearches {
		l = append(l, as(searchesName, field.Invalid(at, all, fmt.Sprintf("must be at most %d domains", maxSearches))))
	}
	if n := len(strings.Join(all, " ")); n > maxSearchesLength {
		l = append(l, as(searchesName, field.Invalid(at, n, fmt.Sprintf("must have at most %d characters together, with a space between each", maxSearchesLength))))
	}
	for i, s := range all {
		for _, e := range invalid(at.Index(i), s, validation.IsDNS1123Subdomain(strings.TrimSuffix(s, "."))) {
			l = append(l, as(searchesName, e))
		}
	}
	return l
}
