package network

import (
	"net/netip"
	"slices"
)

// bound is how a pod's interface is connected to the guest.
type bound string

const (
	boundByNothing    bound = ""
	boundByBridge     bound = "bridge"
	boundByMasquerade bound = "masquerade"
)

// bound says by which binding a namespace was plumbed already, even in part, as
// far as that can be seen.
func (s State) bound() bound {
	if s.link(nicLink) != nil || s.standIn() != nil {
		return boundByBridge
	}
	b := s.link(PodBridge)
	switch {
	case b == nil:
		return boundByNothing
	case len(b.Remembered) > 0, slices.Contains(b.Addresses, netip.PrefixFrom(bridgeServer, 32)):
		return boundByBridge
	case len(b.Addresses) > 0:
		return boundByMasquerade
	}
	return boundByNothing
}
