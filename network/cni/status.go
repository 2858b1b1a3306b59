package cni

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"

	"github.com/podvisor/podvisor/vmi"
)

// ErrStatus is the class of the errors of [ParseStatus].
var ErrStatus = errors.New("no status of Multus")

// mostStatus is the size of the largest status annotation that is read, in bytes. A
// pod with a hundred networks stays below it.
const mostStatus = 64 << 10

// Attached is a network that Multus has attached to a pod.
type Attached struct {
	// Network is the NetworkAttachmentDefinition, as namespace/name, or the name of
	// the cluster's own network.
	Network string
	// Link is the name of the pod's link.
	Link string
	// MAC is the link's address, empty if it has none.
	MAC string
	// Addresses are those that the network plugin gave the pod.
	Addresses []netip.Addr
	// Default says that it is the pod's first network.
	Default bool
	// PCI is the address of the device behind the link, empty if there is none.
	PCI string
}

// Interfaces are the interfaces of the VMI that Multus attached to networks besides the
// pod's first one, as the VMI's status shows them before they are bound. The annotation
// is a [StatusAnnotation]; one that is malformed shows none.
//
// The names of the links are those that [Selection] asks for, whatever the annotation
// says: who wrote it can make an interface be shown or not.
func Interfaces(v *vmi.VirtualMachineInstance, annotation string) []vmi.InterfaceStatus {
	all, err := ParseStatus(annotation)
	if err != nil {
		return nil
	}
	links := Links(v)
	var out []vmi.InterfaceStatus
	for _, n := range v.Spec.Networks {
		link := links[n.Name]
		if n.Multus == nil || link == "" || !slices.ContainsFunc(all, func(a Attached) bool { return a.Link == link && !a.Default }) {
			continue
		}
		out = append(out, vmi.InterfaceStatus{Name: n.Name, PodInterfaceName: link, InfoSource: vmi.InfoSourceMultusStatus})
	}
	return out
}

// status is what is read of one network. Multus writes more.
type status struct {
	Name      string   `json:"name"`
	Interface string   `json:"interface"`
	MAC       string   `json:"mac"`
	IPs       []string `json:"ips"`
	Default   bool     `json:"default"`
	Device    struct {
		PCI struct {
			Address string `json:"pci-address"`
		} `json:"pci"`
	} `json:"device-info"`
}

var (
	name    = regexp.MustCompile(`^[A-Za-z0-9._-]{1,253}(/[A-Za-z0-9._-]{1,253})?$`)
	link    = regexp.MustCompile(`^[!-.0-9;-~]{1,15}$`)
	mac     = regexp.MustCompile(`^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$`)
	address = regexp.MustCompile(`^[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$`)
)

// ParseStatus reads a [StatusAnnotation]. All of it must be well-formed: who can update
// the pod may have written it. An error wraps [ErrStatus].
func ParseStatus(annotation string) ([]Attached, error) {
	if len(annotation) > mostStatus {
		return nil, fmt.Errorf("%w: it has %d bytes, and at most %d are read", ErrStatus, len(annotation), mostStatus)
	}
	var all []status
	if err := json.Unmarshal([]byte(annotation), &all); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStatus, err)
	}
	var out []Attached
	for n, s := range all {
		a, err := s.attached()
		if err != nil {
			return nil, fmt.Errorf("%w: network %d: %w", ErrStatus, n, err)
		}
		out = append(out, a)
	}
	return out, nil
}

func (s status) attached() (Attached, error) {
	a := Attached{Network: s.Name, Link: s.Interface, MAC: s.MAC, Default: s.Default, PCI: s.Device.PCI.Address}
	for _, f := range []struct {
		what, value string
		pattern     *regexp.Regexp
		optional    bool
	}{
		{"name", s.Name, name, false},
		{"interface", s.Interface, link, true}, // a network plugin need not make one
		{"mac", s.MAC, mac, true},
		{"pci-address", a.PCI, address, true},
	} {
		if (!f.optional || f.value != "") && !f.pattern.MatchString(f.value) {
			return Attached{}, fmt.Errorf("%s %.64q is malformed", f.what, f.value)
		}
	}
	for _, ip := range s.IPs {
		p, err := netip.ParseAddr(ip)
		if err != nil || p.Zone() != "" {
			return Attached{}, fmt.Errorf("address %.64q is malformed", ip)
		}
		a.Addresses = append(a.Addresses, p)
	}
	return a, nil
}
