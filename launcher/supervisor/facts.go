package supervisor

import (
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/domain"
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
	target  bool              // some Desired was that of a target
	stopBy  time.Time
	// terminated says that the end was asked for from outside before any Desired did.
	terminated bool

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

	rebootedAt   time.Time // by the guest
	readAtReboot int64     // by the guest of its disks
	boot         launcher.Boot
	readBefore   int64 // by the guest of its disks, when boot began
	output       launcher.Output

	growing    map[string]storage.Attachment // disks in claims, as large as they shall be, by their aliases
	operations launcher.Operations           // never changed, only replaced

	// observed is what the handler reads of the domain and its guest. What it holds is
	// never changed, only replaced.
	observed protocol.State
	attached []launcher.Device // those of the domain; never changed, only replaced

	images      map[string]storage.Image // in the container disks of the pod, by the volume
	attachments map[string]domain.Disk   // those of the disks, by name; never changed, only replaced

	// migration is the last that the launcher took part in. It is never changed, only replaced.
	migration *protocol.Migration
	moved     bool // the guest runs in another pod
	helped    bool // the guest was paused for the migration to be complete

	lost []string // file systems whose servers ended

	resumed     bool              // the guest of a domain that is made here runs, or ran
	off         bool              // the guest has powered off, and QEMU is to end
	stopped     bool              // QEMU, by a signal, and it may go on
	interrupted bool              // QEMU got a signal to end
	watchdog    bool              // the guest's watchdog makes QEMU end
	event       libvirt.EventKind // of the end
	status      *unix.WaitStatus  // of QEMU
	exit        launcher.Exit
}

func newFacts() *facts {
	return &facts{wake: make(chan struct{}, 1), session: launcher.Session{LostAt: time.Now()}}
}

// change changes the facts and wakes the loop.
func (f *facts) change(change func(*facts)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
	f.changed()
}

// changed wakes the loop.
func (f *facts) changed() {
	f.settle()
	select {
	case f.wake <- struct{}{}:
	default: // the loop is woken already
	}
}

// note changes what is observed. The loop is not woken by what was known before, of which
// note returns false.
func (f *facts) note(change func(*protocol.State)) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.observed
	change(&f.observed)
	if reflect.DeepEqual(before, f.observed) {
		return false
	}
	f.changed()
	return true
}

// known is what was observed.
func (f *facts) known() protocol.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.observed
}

// observe returns the facts as launcher.Decide takes them.
func (f *facts) observe(now time.Time) (launcher.Desired, launcher.Actual) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := launcher.Desired{Run: f.desired != nil, Target: f.target, StopBy: f.stopBy, Terminated: f.terminated, Devices: f.devices, Call: f.call}
	if f.desired != nil {
		d.Generation = f.desired.Generation
	}
	return d, launcher.Actual{
		Now: now, Domain: f.domain, Observed: f.state(), Devices: f.attached, Session: f.session,
		Stopped: f.stopped, Pause: f.pause, PausedAt: f.pausedAt, ResumedAt: f.resumedAt, Resumes: f.resumes, Turning: f.turning,
		Boot: f.boot, Output: f.output, LostFilesystems: slices.Clone(f.lost),
		Operations: f.operations, Fault: f.fault, RetryAt: f.retryAt, AskedAt: f.askedAt, KilledAt: f.killedAt, Exit: f.exit,
		Moving: f.moving(),
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
		f.target = f.target || d.Role == vmi.RoleTarget
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

// terminate is the stop that the pod's own end asks for. It is its cause unless a Desired
// asked for one before.
func (f *facts) terminate(by time.Time) {
	f.terminated = f.terminated || f.stopBy.IsZero()
	f.stop(by)
}

// stop sets the end of the grace period, unless it is sooner already.
func (f *facts) stop(by time.Time) {
	if f.stopBy.IsZero() || by.Before(f.stopBy) {
		f.stopBy = by
	}
}

// state is what was observed, as it is reported. A fact that is added to what is observed
// is reported without a change here.
func (f *facts) state() protocol.State {
	s := f.observed
	s.Links = f.links()
	s.Movable, s.Migration = true, f.migration
	if s.Agent == nil {
		libvirt.DropGuest(&s)
	}
	return s
}

// exists says that there is a domain with a QEMU, whose guest is or was here.
func (f *facts) exists() bool { return f.domain == launcher.Running || f.domain == launcher.Paused }

// forget drops what was observed of a domain that is not the one that is started.
func (f *facts) forget() {
	f.pause, f.off, f.interrupted, f.watchdog, f.event = protocol.Pause{}, false, false, false, ""
	f.observed = protocol.State{}
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
