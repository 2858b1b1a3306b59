package libvirt

import (
	"context"
	"fmt"

	golibvirt "github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// Warm makes the daemon read what QEMU and the models of processors are, which it does at
// the first call that needs it: the creation of a domain, otherwise.
func (c *Connection) Warm(ctx context.Context) error {
	_, err := wait(ctx, c, func() (string, error) {
		return c.rpc.ConnectGetDomainCapabilities(nil, nil, nil, nil, golibvirt.ConnectGetDomainCapabilitiesFlags(0))
	})
	if err != nil {
		return fmt.Errorf("ask libvirt for the capabilities of domains: %w", err)
	}
	return nil
}

// MachineTypes are the machine types that QEMU has for guests of an architecture, as
// libvirt names it, aliases such as q35 included.
func (c *Connection) MachineTypes(ctx context.Context, arch string) ([]string, error) {
	xml, err := wait(ctx, c, c.rpc.ConnectGetCapabilities)
	if err != nil {
		return nil, fmt.Errorf("ask libvirt for the capabilities of the host: %w", err)
	}
	return machineTypes(xml, arch)
}

// machineTypes are the machine types in libvirt's capabilities.
func machineTypes(xml, arch string) ([]string, error) {
	var c libvirtxml.Caps
	if err := c.Unmarshal(xml); err != nil {
		return nil, fmt.Errorf("read the capabilities of the host: %w", err)
	}
	for _, g := range c.Guests {
		if g.Arch.Name != arch {
			continue
		}
		var all []string
		for _, m := range g.Arch.Machines {
			all = append(all, m.Name)
		}
		return all, nil
	}
	return nil, fmt.Errorf("libvirt has no QEMU for the architecture %s", arch)
}
