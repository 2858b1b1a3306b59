package launcher

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// The reasons of the findings in a state.
const (
	// ReasonStartFailed: the domain could not be created, and it is tried again.
	ReasonStartFailed = "StartFailed"
	// ReasonLibvirtUnavailable: the libvirt daemon does not answer.
	ReasonLibvirtUnavailable = "LibvirtUnavailable"
	// ReasonDevicesDiffer: devices of the domain are not the desired ones, and this
	// build does not change those of a domain that runs.
	ReasonDevicesDiffer = "DevicesDiffer"
	// ReasonResizeFailed: a disk whose claim has grown could not grow, and it is tried
	// again.
	ReasonResizeFailed = "DiskResizeFailed"
	// ReasonSwitchFailed: the link of an interface could not be set up or down, and it is
	// tried again.
	ReasonSwitchFailed = "LinkSwitchFailed"
	// ReasonFilesystemLost: the server of a file system ended, and the guest cannot use
	// the file system until its domain is made anew.
	ReasonFilesystemLost = "FilesystemLost"
)

// checks find why a domain is not as it is desired, the most important first. A
// check that finds nothing yet returns when to check again.
var checks = []func(Desired, Actual) (f *vmi.Finding, wait time.Duration){
	startFails,
	daemonSilent,
	devicesDiffer,
	operationFails,
	filesystemsLost,
}

// find adds the first finding to the plan's state. A domain that is to end has
// none.
func (p *Plan) find(d Desired, a Actual) {
	switch p.State.Phase {
	case protocol.Waiting, protocol.Stopping, protocol.Ended:
		return
	}
	for _, check := range checks {
		f, wait := check(d, a)
		p.recheck(wait)
		if f != nil {
			p.State.Finding = f
			return
		}
	}
}

func startFails(_ Desired, a Actual) (*vmi.Finding, time.Duration) {
	if a.Fault == nil || a.Domain.exists() {
		return nil, 0
	}
	return &vmi.Finding{Reason: ReasonStartFailed, Message: a.Fault.Error()}, 0
}

func daemonSilent(_ Desired, a Actual) (*vmi.Finding, time.Duration) {
	if a.Session.LostAt.IsZero() {
		return nil, 0
	}
	if wait := a.Session.LostAt.Add(sessionDelay).Sub(a.Now); wait > 0 {
		return nil, wait
	}
	message := "the libvirt daemon does not answer"
	if a.Session.Message != "" {
		message += ": " + a.Session.Message
	}
	return &vmi.Finding{Reason: ReasonLibvirtUnavailable, Message: message}, 0
}

func devicesDiffer(d Desired, a Actual) (*vmi.Finding, time.Duration) {
	if !a.Domain.exists() {
		return nil, 0
	}
	difference := compare(d.Devices, a.Devices)
	if difference.Empty() {
		return nil, 0
	}
	return &vmi.Finding{
		Reason:  ReasonDevicesDiffer,
		Message: fmt.Sprintf("%s: the devices of a domain that runs are not changed", difference),
	}, 0
}

func filesystemsLost(_ Desired, a Actual) (*vmi.Finding, time.Duration) {
	if !a.Domain.exists() || len(a.LostFilesystems) == 0 {
		return nil, 0
	}
	names := slices.Sorted(slices.Values(a.LostFilesystems))
	return &vmi.Finding{
		Reason: ReasonFilesystemLost,
		Message: fmt.Sprintf("the server of file system %s ended, and QEMU does not connect to another: programs of the guest that use it wait for ever: "+
			"stop and start the VM; a guest that only reboots does not get it back", strings.Join(slices.Compact(names), ", ")),
	}, 0
}
