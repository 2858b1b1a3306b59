package libvirt

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	golibvirt "github.com/digitalocean/go-libvirt"

	"github.com/podvisor/podvisor/launcher/protocol"
)

// Suspend pauses the guest of the domain of this name. It is no error if the guest
// is paused already.
func (c *Connection) Suspend(ctx context.Context, name string) error {
	return c.with(ctx, "suspend", name, func(d golibvirt.Domain) error { return c.rpc.DomainSuspend(d) })
}

// Resume resumes the guest of the domain of this name. It is no error if the guest
// runs already: a call before, to which there was no answer in time, may have resumed it.
func (c *Connection) Resume(ctx context.Context, name string) error {
	return c.with(ctx, "resume", name, func(d golibvirt.Domain) error {
		err := c.rpc.DomainResume(d)
		if err == nil {
			return nil
		}
		// libvirt has one code for all that a state does not permit.
		if state, _, unread := c.rpc.DomainGetState(d, 0); unread == nil && golibvirt.DomainState(state) == golibvirt.DomainRunning {
			return nil
		}
		return err
	})
}

// DiskError is a disk whose last request failed, so that the guest was paused.
type DiskError struct {
	// Alias is the disk's alias in the domain.
	Alias string
	// NoSpace says that what the disk is on is full.
	NoSpace bool
}

// DiskErrors are the disks of the domain of this name that have an error. An error
// is over when the guest is resumed.
//
// QEMU is asked, not libvirt: go-libvirt cannot decode virDomainGetDiskErrors, whose
// structure has a field that it does not export.
func (c *Connection) DiskErrors(ctx context.Context, name string) ([]DiskError, error) {
	answer, err := of(ctx, c, "get the disk errors of", name, func(d golibvirt.Domain) (string, error) {
		return c.rpc.QEMUDomainMonitorCommand(d, `{"execute":"query-block"}`, 0)
	})
	if err != nil {
		return nil, err
	}
	all, err := diskErrors(answer)
	return all, failure("get the disk errors of", name, err)
}

// diskErrors reads the answer to query-block.
func diskErrors(answer string) ([]DiskError, error) {
	var blocks struct {
		Return []struct {
			Device string `json:"qdev"`
			Status string `json:"io-status"`
		} `json:"return"`
	}
	if err := json.Unmarshal([]byte(answer), &blocks); err != nil {
		return nil, fmt.Errorf("read the answer to query-block: %w", err)
	}
	var all []DiskError
	for _, b := range blocks.Return {
		if b.Status == "failed" || b.Status == "nospace" {
			all = append(all, DiskError{Alias: alias(b.Device), NoSpace: b.Status == "nospace"})
		}
	}
	return all, nil
}

// alias is the alias of a device that QEMU names by its alias, or by the path of
// it or of a part of it: /machine/peripheral/ua-root/virtio-backend.
func alias(device string) string {
	rest, isPath := strings.CutPrefix(device, "/machine/peripheral/")
	if !isPath {
		return device
	}
	first, _, _ := strings.Cut(rest, "/")
	return first
}

// pauseReasons are the causes of a pause that a domain's state gives.
var pauseReasons = map[golibvirt.DomainPausedReason]protocol.PauseCause{
	golibvirt.DomainPausedUser:      protocol.PausedByUser,
	golibvirt.DomainPausedIoerror:   protocol.PausedByIOError,
	golibvirt.DomainPausedWatchdog:  protocol.PausedByWatchdog,
	golibvirt.DomainPausedMigration: protocol.PausedByMigration,
	golibvirt.DomainPausedPostcopy:  protocol.PausedByMigration,
	golibvirt.DomainPausedCrashed:   protocol.PausedByPanic,
}

// suspendDetails are the causes of a pause that an event gives.
var suspendDetails = map[golibvirt.DomainEventSuspendedDetailType]protocol.PauseCause{
	golibvirt.DomainEventSuspendedPaused:   protocol.PausedByUser,
	golibvirt.DomainEventSuspendedIoerror:  protocol.PausedByIOError,
	golibvirt.DomainEventSuspendedWatchdog: protocol.PausedByWatchdog,
	golibvirt.DomainEventSuspendedMigrated: protocol.PausedByMigration,
	golibvirt.DomainEventSuspendedPostcopy: protocol.PausedByMigration,
}

// pauseCause is the cause that a table has for a number of libvirt's.
func pauseCause[N comparable](causes map[N]protocol.PauseCause, n N) protocol.PauseCause {
	if c, ok := causes[n]; ok {
		return c
	}
	return protocol.PausedByUnknown
}
