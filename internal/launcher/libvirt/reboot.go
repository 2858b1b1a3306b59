package libvirt

import (
	"context"

	golibvirt "github.com/digitalocean/go-libvirt"
)

// Reboot asks the guest of the domain of this name to reboot by its power button. The
// guest may or may not.
func (c *Connection) Reboot(ctx context.Context, name string) error {
	return c.with(ctx, "reboot", name, func(d golibvirt.Domain) error {
		return c.rpc.DomainReboot(d, golibvirt.DomainRebootAcpiPowerBtn)
	})
}

// RebootByAgent asks the agent in the guest of the domain of this name to reboot. It
// returns when the guest is reset or the agent has ended, which may take a minute; it is
// an error if neither happens by then, or if the agent refuses or does not answer.
func (c *Connection) RebootByAgent(ctx context.Context, name string) error {
	return requestAgent(ctx, c, "reboot by its agent", name, func(d golibvirt.Domain) error {
		return c.rpc.DomainReboot(d, golibvirt.DomainRebootGuestAgent)
	})
}
