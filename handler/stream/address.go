package stream

import (
	"fmt"
	"net"
	"net/netip"
)

// MigrationInterface is the interface of a handler's pod that migrations use if the
// configuration of the cluster names a network for them.
const MigrationInterface = "migration0"

// MigrationAddressAnnotation is the annotation of a node that has the address of its handler
// for migrations: [MigrationAddress].
const MigrationAddressAnnotation = "podvisor.io/migration-address"

// MigrationAddress returns the first global unicast address of the [MigrationInterface], which
// the network plugin has made before the handler started. It is empty if there is no such
// interface. One without such an address is an error.
func MigrationAddress() (string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return "", fmt.Errorf("list the interfaces: %w", err)
	}
	for _, i := range all {
		if i.Name != MigrationInterface {
			continue
		}
		addresses, err := i.Addrs()
		if err != nil {
			return "", fmt.Errorf("list the addresses of interface %s: %w", i.Name, err)
		}
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().IsGlobalUnicast() {
				return p.Addr().String(), nil
			}
		}
		return "", fmt.Errorf("interface %s has no global unicast address", i.Name)
	}
	return "", nil
}

// migrationAddress is the address that the annotation of a node has. ok is false for all but a
// global unicast address: who writes the annotation directs no handler to its own node.
func migrationAddress(annotation string) (a netip.Addr, ok bool) {
	a, err := netip.ParseAddr(annotation)
	return a, err == nil && a.IsGlobalUnicast() && a.Zone() == ""
}
