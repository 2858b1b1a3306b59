package supervisor

import (
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/libvirt"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// facts are what is desired and what is known of the domain. Whatever is learned
// is written here and wakes the loop.
type facts struct {
	mu   sync.Mutex
	wake chan struct{}

	desired *protocol.Desired
	devices []launcher.Device // of desired
	stopBy  time.Time

	call    protocol.Call // about pausing, in force
	callers []chan<- error

	domain  launcher.Domain
	session launcher.Session

	fault   error
	faults  int
	retryAt time.Time

	pause               protocol.Pause
	pausedAt, resumedAt time.Time
	resumes             int
	turning             bool
	events              int // about the guest being paused or running

	askedAt, killedAt time.Time

	reboots, panics int64 // of the guest
	rebootedAt      time.Time
	boot            launcher.Boot
	readBefore      int64 // by the guest of its disks, when boot began

	growing    map[string]storage.Attachment // disks in claims, as large as they shall be, by their aliases
	operations launcher.Operations           // never changed, only replaced

	running running         // what is known of the domain
	agent   *protocol.Agent // in the guest; never changed, only replaced

	interfaces []protocol.Interface // of the guest; never changed, only replaced

	frozen bool // the file systems of the guest

	lost []string // file systems whose servers ended

	credentials *protocol.Credentials // written by the agent; never changed, only replaced

	interrupted bool              // QEMU got a signal to end
	watchdog    bool              // the guest's watchdog makes QEMU end
	event       libvirt.EventKind // of the end
	status      *unix.WaitStatus  // of QEMU
	exit        launcher.Exit
}

// running are the facts of a domain that was created.
type running struct {
	emulated    bool
	machineType string
	disks       []protocol.Disk
	devices     []launcher.Device
	kernel      *vmi.KernelBootStatus // never changed
	vsockCID    uint32                // 0: none
	paused      bool                  // it was created with the guest's processors stopped
}

func newFacts() *facts {
	return &facts{wake: make(chan struct{}, 1), session: launcher.Session{LostAt: time.Now()}}
}

// change changes the facts and wakes the loop.
func (f *facts) change(change func(*facts)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
	f.settle()
	select {
	case f.wake <- struct{}{}:
	default: // the loop is woken already
	}
}

// observe returns the facts as launcher.Decide takes them.
func (f *facts) observe(now time.Time) (launcher.Desired, launcher.Actual) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := launcher.Desired{Run: f.desired != nil, StopBy: f.stopBy, Devices: f.devices, Call: f.call}
	if f.desired != nil {
		d.Generation = f.desired.Generation
	}
	return d, launcher.Actual{
		Now: now, Domain: f.domain, Devices: f.running.devices, Session: f.session,
		Pause: f.pause, PausedAt: f.pausedAt, ResumedAt: f.resumedAt, Resumes: f.resumes, Turning: f.turning,
		Boot: f.boot, LostFilesystems: slices.Clone(f.lost),
		Operations: f.operations, Fault: f.fault, RetryAt: f.retryAt, AskedAt: f.askedAt, KilledAt: f.killedAt, Exit: f.exit,
	}
}

// put makes d the Desired in force. A stop stays in force, and the shorter of two
// grace periods counts.
func (f *facts) put(d protocol.Desired, now time.Time) {
	f.change(func(f *facts) {
		if !same(f.desired, &d) {
			f.retryAt = time.Time{} // a start that failed may succeed now
		}
		f.desired, f.devices = &d, desiredDevices(d.Instance)
		f.enlarge()
		if d.Stop != nil {
			f.stop(now.Add(time.Duration(d.Stop.GracePeriodSeconds) * time.Second))
		}
	})
}

// same says that two Desired differ in nothing but their generation.
func same(before, after *protocol.Desired) bool {
	if before == nil {
		return false
	}
	counted := *after
	counted.Generation = before.Generation
	return reflect.DeepEqual(before, &counted)
}

// stop sets the end of the grace period, unless it is sooner already.
func (f *facts) stop(by time.Time) {
	if f.stopBy.IsZero() || by.Before(f.stopBy) {
		f.stopBy = by
	}
}

// complete adds the facts of the domain to the state of a plan.
func (f *facts) complete(s protocol.State) protocol.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Emulated, s.Machine, s.Disks, s.Agent = f.running.emulated, f.running.machineType, f.running.disks, f.agent
	s.Reboots, s.Panics, s.Credentials, s.KernelBoot = f.reboots, f.panics, f.credentials, f.running.kernel
	s.VSOCKCID, s.Links, s.Frozen = f.running.vsockCID, f.links(), f.frozen
	if f.agent != nil {
		s.Interfaces = f.interfaces
	}
	return s
}

// forget drops what libvirt reported about a domain that is not the one that is
// started.
func (f *facts) forget() {
	f.pause, f.interrupted, f.watchdog, f.event, f.agent, f.credentials = protocol.Pause{}, false, false, "", nil, nil
	f.interfaces, f.frozen = nil, false
}

// agentNow is what is known of the agent in the guest.
func (f *facts) agentNow() *protocol.Agent {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.agent
}

// interfacesNow are the interfaces of the guest as far as they are known.
func (f *facts) interfacesNow() []protocol.Interface {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.interfaces
}

// frozenNow says whether the guest's file systems are known to be frozen.
func (f *facts) frozenNow() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.frozen
}

// rebootsNow is how often the guest rebooted.
func (f *facts) rebootsNow() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reboots
}

// acpi says whether the guest of the domain in force has ACPI.
func (f *facts) acpi() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.desired == nil {
		return true
	}
	features := f.desired.Instance.Spec.Domain.Features
	return features == nil || features.ACPI.Enabled == nil || *features.ACPI.Enabled
}
