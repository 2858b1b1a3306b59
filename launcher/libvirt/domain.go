package libvirt

import (
	"context"
	"fmt"

	golibvirt "github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// State is what a domain does.
type State string

// The states of a domain that the daemon knows.
const (
	// Running: the guest runs.
	Running State = "running"
	// Paused: QEMU runs and the guest does not.
	Paused State = "paused"
	// Stopping: QEMU is on its way out.
	Stopping State = "stopping"
	// Stopped: there is no QEMU.
	Stopped State = "stopped"
)

var states = map[golibvirt.DomainState]State{
	golibvirt.DomainRunning:     Running,
	golibvirt.DomainBlocked:     Running,
	golibvirt.DomainPaused:      Paused,
	golibvirt.DomainPmsuspended: Paused,
	golibvirt.DomainShutdown:    Stopping,
	golibvirt.DomainShutoff:     Stopped,
	golibvirt.DomainCrashed:     Stopped,
}

// Create makes a transient domain and starts it. It returns when the guest
// runs.
func (c *Connection) Create(ctx context.Context, d *libvirtxml.Domain) error {
	xml, err := d.Marshal()
	if err != nil {
		return fmt.Errorf("write domain %s as XML: %w", d.Name, err)
	}
	return failure("create", d.Name, wait(ctx, func() error {
		_, err := c.rpc.DomainCreateXML(xml, golibvirt.DomainNone)
		return err
	}))
}

// State is what the domain of this name does, or an [ErrNotFound].
func (c *Connection) State(ctx context.Context, name string) (State, error) {
	var s int32
	err := c.with(ctx, "look at", name, func(d golibvirt.Domain) (err error) {
		s, _, err = c.rpc.DomainGetState(d, 0)
		return err
	})
	if err != nil {
		return "", err
	}
	return states[golibvirt.DomainState(s)], nil
}

// Machine is the machine type of the domain of this name, in full.
func (c *Connection) Machine(ctx context.Context, name string) (string, error) {
	d, err := c.describe(ctx, name)
	if err != nil || d.OS == nil || d.OS.Type == nil {
		return "", err
	}
	return d.OS.Type.Machine, nil
}

// describe is the domain of this name as it is now.
func (c *Connection) describe(ctx context.Context, name string) (*libvirtxml.Domain, error) {
	var xml string
	err := c.with(ctx, "describe", name, func(d golibvirt.Domain) (err error) {
		xml, err = c.rpc.DomainGetXMLDesc(d, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	d := &libvirtxml.Domain{}
	if err := d.Unmarshal(xml); err != nil {
		return nil, fmt.Errorf("read the XML of domain %s: %w", name, err)
	}
	return d, nil
}

// Shutdown presses the power button of the domain of this name. Whether the
// guest does something about it is the guest's affair.
func (c *Connection) Shutdown(ctx context.Context, name string) error {
	return c.with(ctx, "shut down", name, func(d golibvirt.Domain) error {
		return c.rpc.DomainShutdownFlags(d, golibvirt.DomainShutdownAcpiPowerBtn)
	})
}

// Destroy ends QEMU. It returns when it has ended.
func (c *Connection) Destroy(ctx context.Context, name string) error {
	return c.with(ctx, "destroy", name, func(d golibvirt.Domain) error {
		return c.rpc.DomainDestroyFlags(d, golibvirt.DomainDestroyDefault)
	})
}

// with does something to the domain of this name.
func (c *Connection) with(ctx context.Context, op, name string, do func(golibvirt.Domain) error) error {
	return failure(op, name, wait(ctx, func() error {
		d, err := c.rpc.DomainLookupByName(name)
		if err != nil {
			return err
		}
		return do(d)
	}))
}
