package libvirt

import (
	"context"
	"fmt"

	golibvirt "github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/launcher/protocol"
)

// State is what a domain does.
type State string

// The states of a domain that the daemon knows.
const (
	// Running: the guest runs.
	Running State = "running"
	// Paused: QEMU runs and the guest does not.
	Paused State = "paused"
	// Stopping: QEMU ends.
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
	return c.create(ctx, d, golibvirt.DomainNone)
}

// CreatePaused is Create for a guest whose processors stay stopped until
// [Connection.Resume].
func (c *Connection) CreatePaused(ctx context.Context, d *libvirtxml.Domain) error {
	return c.create(ctx, d, golibvirt.DomainStartPaused)
}

func (c *Connection) create(ctx context.Context, d *libvirtxml.Domain, flags golibvirt.DomainCreateFlags) error {
	xml, err := d.Marshal()
	if err != nil {
		return fmt.Errorf("write domain %s as XML: %w", d.Name, err)
	}
	return failure("create", d.Name, c.do(ctx, func() error {
		_, err := c.rpc.DomainCreateXML(xml, flags)
		return err
	}))
}

// Status is what a domain does, and why if it is paused.
type Status struct {
	State State
	// Pause is the cause of a pause. Empty unless State is Paused.
	Pause protocol.PauseCause
}

// Status is what the domain of this name does, or an [ErrNotFound].
func (c *Connection) Status(ctx context.Context, name string) (Status, error) {
	return of(ctx, c, "get the state of", name, func(d golibvirt.Domain) (Status, error) {
		state, reason, err := c.rpc.DomainGetState(d, 0)
		if err != nil {
			return Status{}, err
		}
		return status(golibvirt.DomainState(state), reason), nil
	})
}

// status translates libvirt's pair of numbers.
func status(state golibvirt.DomainState, reason int32) Status {
	s := Status{State: states[state]}
	if s.State != Paused {
		return s
	}
	s.Pause = protocol.PausedByUnknown
	if state == golibvirt.DomainPaused { // the reasons of other states are other numbers
		s.Pause = pauseCause(pauseReasons, golibvirt.DomainPausedReason(reason))
	}
	return s
}

// Describe is the domain of this name as it is now.
func (c *Connection) Describe(ctx context.Context, name string) (*libvirtxml.Domain, error) {
	xml, err := of(ctx, c, "describe", name, func(d golibvirt.Domain) (string, error) { return c.rpc.DomainGetXMLDesc(d, 0) })
	if err != nil {
		return nil, err
	}
	d := &libvirtxml.Domain{}
	if err := d.Unmarshal(xml); err != nil {
		return nil, fmt.Errorf("read the XML of domain %s: %w", name, err)
	}
	return d, nil
}

// BytesRead is how many bytes the guest of the domain of this name has read of all
// its disks since it was started.
func (c *Connection) BytesRead(ctx context.Context, name string) (int64, error) {
	return of(ctx, c, "get the statistics of the disks of", name, func(d golibvirt.Domain) (int64, error) {
		_, read, _, _, _, err := c.rpc.DomainBlockStats(d, "") // no path: of all together
		return read, err
	})
}

// Shutdown presses the power button of the domain of this name. The guest may or
// may not power off.
func (c *Connection) Shutdown(ctx context.Context, name string) error {
	return c.with(ctx, "shut down", name, func(d golibvirt.Domain) error {
		return c.rpc.DomainShutdownFlags(d, golibvirt.DomainShutdownAcpiPowerBtn)
	})
}

// ShutdownByAgent asks the agent in the guest of the domain of this name to power off.
// It takes up to ten seconds if the agent does not answer.
func (c *Connection) ShutdownByAgent(ctx context.Context, name string) error {
	return requestAgent(ctx, c, "shut down by its agent", name, func(d golibvirt.Domain) error {
		return c.rpc.DomainShutdownFlags(d, golibvirt.DomainShutdownGuestAgent)
	})
}

// Reset presses the reset button of the domain of this name: the guest begins anew
// without being asked.
func (c *Connection) Reset(ctx context.Context, name string) error {
	return c.with(ctx, "reset", name, func(d golibvirt.Domain) error { return c.rpc.DomainReset(d, 0) })
}

// Destroy ends QEMU. It returns when it has ended.
func (c *Connection) Destroy(ctx context.Context, name string) error {
	return c.with(ctx, "destroy", name, func(d golibvirt.Domain) error {
		return c.rpc.DomainDestroyFlags(d, golibvirt.DomainDestroyDefault)
	})
}
