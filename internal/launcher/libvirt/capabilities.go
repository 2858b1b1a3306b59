package libvirt

import (
	"context"
	"fmt"

	"libvirt.org/go/libvirtxml"
)

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
