package network

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// merger joins the configs of the interfaces of a VMI.
type merger struct {
	config Config
}

// add adds the config of one interface, if it agrees with those before.
func (m *merger) add(i Interface, part Config) error {
	if err := errors.Join(m.links(i, part.Links), m.sysctls(i, part.Sysctls)); err != nil {
		return err
	}
	for _, l := range part.Links {
		l.Interface = i.Spec.Name
		m.config.Links = append(m.config.Links, l)
	}
	for _, s := range part.Sysctls {
		if !slices.Contains(m.config.Sysctls, s) {
			m.config.Sysctls = append(m.config.Sysctls, s)
		}
	}
	m.config.NAT = append(m.config.NAT, part.NAT...)
	m.config.Filters = append(m.config.Filters, part.Filters...)
	m.config.Attachments = append(m.config.Attachments, part.Attachments...)
	m.config.Interfaces = append(m.config.Interfaces, part.Interfaces...)
	m.config.Notes = append(m.config.Notes, part.Notes...)
	return nil
}

// links checks that the links of an interface are its own, and that its guest's
// networks are.
func (m *merger) links(i Interface, links []LinkConfig) error {
	var faults []error
	for _, l := range links {
		for _, other := range m.config.Links {
			if l.Name == other.Name {
				faults = append(faults, fmt.Errorf("bind interface %s: the link %s is one of interface %s", i.Spec.Name, l.Name, other.Interface))
			}
			if a, b, ok := overlap(l, other); ok {
				faults = append(faults, invalid(i.Path, "interface %s: its guest's network %s overlaps %s of interface %s",
					i.Spec.Name, a.Masked(), b.Masked(), other.Interface))
			}
		}
	}
	return errors.Join(faults...)
}

// sysctls checks that no interface needs another value of a setting.
func (m *merger) sysctls(i Interface, sysctls []Sysctl) error {
	var faults []error
	for _, s := range sysctls {
		for _, other := range m.config.Sysctls {
			if s.Key == other.Key && s.Value != other.Value {
				faults = append(faults, fmt.Errorf("bind interface %s: set %s to %s: another interface needs %s", i.Spec.Name, s.Key, s.Value, other.Value))
			}
		}
	}
	return errors.Join(faults...)
}

// overlap returns the networks of two links which have addresses in common, so
// that the kernel could not choose a link. Links that are down hold addresses
// that belong elsewhere, and a single address leads nowhere.
func overlap(a, b LinkConfig) (netip.Prefix, netip.Prefix, bool) {
	if a.Down || b.Down {
		return netip.Prefix{}, netip.Prefix{}, false
	}
	for _, x := range a.Addresses {
		for _, y := range b.Addresses {
			if !x.IsSingleIP() && !y.IsSingleIP() && x.Overlaps(y) {
				return x, y, true
			}
		}
	}
	return netip.Prefix{}, netip.Prefix{}, false
}
