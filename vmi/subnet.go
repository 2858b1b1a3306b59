package vmi

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// The networks between a pod and its guest behind masquerade, unless the spec has others.
const (
	guestNetwork4 = "10.0.2.0/24"
	guestNetwork6 = "fd10:0:2::/120"
)

// Subnet4 is the IPv4 network between the pod and its guest behind masquerade. Numbers may
// have zeros before them and are decimal, as in 10.10.010.0/24. The error says what is
// wrong with the network. A nil network is the default one.
func (p *PodNetwork) Subnet4() (netip.Prefix, error) {
	text := guestNetwork4
	if p != nil {
		text = cmp.Or(p.VMNetworkCIDR, text)
	}
	n, err := netip.ParsePrefix(withoutZeros(text))
	if err != nil || !n.Addr().Is4() {
		return n, errors.New("must be an IPv4 network, as address/length")
	}
	return n.Masked(), room(n.Masked(), 30, notGuests4)
}

// Subnet6 is the same for IPv6.
func (p *PodNetwork) Subnet6() (netip.Prefix, error) {
	text := guestNetwork6
	if p != nil {
		text = cmp.Or(p.VMIPv6NetworkCIDR, text)
	}
	n, err := netip.ParsePrefix(text)
	if err != nil || !n.Addr().Is6() {
		return n, errors.New("must be an IPv6 network, as address/length")
	}
	return n.Masked(), room(n.Masked(), 126, notGuests6)
}

// The networks whose addresses no guest can have.
var (
	notGuests4 = []reserved{
		{netip.MustParsePrefix("0.0.0.0/8"), "addresses of no host"}, {netip.MustParsePrefix("127.0.0.0/8"), "loopback addresses"},
		{netip.MustParsePrefix("224.0.0.0/4"), "multicast addresses"}, {netip.MustParsePrefix("240.0.0.0/4"), "reserved addresses"},
	}
	notGuests6 = []reserved{
		{netip.MustParsePrefix("::/127"), "the loopback address"}, {netip.MustParsePrefix("::ffff:0:0/96"), "addresses of IPv4"},
		{netip.MustParsePrefix("fe80::/10"), "link-local addresses"}, {netip.MustParsePrefix("ff00::/8"), "multicast addresses"},
	}
)

// reserved is a network and what its addresses are.
type reserved struct {
	network netip.Prefix
	what    string
}

// room says why a network cannot be that of a guest and its gateway.
func room(n netip.Prefix, longest int, not []reserved) error {
	if n.Bits() > longest {
		return fmt.Errorf("must have room for the guest and its gateway: at most /%d", longest)
	}
	for _, r := range not {
		if n.Overlaps(r.network) {
			return fmt.Errorf("must not hold %s, which are %s: choose a private network, such as %s", r.network,
				r.what, map[bool]string{true: guestNetwork4, false: guestNetwork6}[n.Addr().Is4()])
		}
	}
	return nil
}

// withoutZeros is an IPv4 network without the zeros before its numbers.
func withoutZeros(text string) string {
	address, length, _ := strings.Cut(text, "/")
	parts := strings.Split(address, ".")
	for i, p := range parts {
		parts[i] = short(p)
	}
	return strings.Join(parts, ".") + "/" + short(length)
}

// short is a number of at most three digits without the zeros before it. Any other text
// stays as it is.
func short(digits string) string {
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || len(digits) > 3 {
		return digits
	}
	return strconv.FormatUint(n, 10)
}
