package protocol

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/podvisor/podvisor/vmi"
)

// State is everything that a launcher reports of its domain.
type State struct {
	// Generation is that of the Desired in force. 0: nothing was put yet, or by a
	// handler that does not count, or the launcher does not count.
	Generation int64 `json:"generation,omitempty"`
	// Phase is where the guest is in its life.
	Phase Phase `json:"phase"`
	// Finding is why the domain is not as it is desired. The launcher goes on
	// trying. Nil: the domain is as desired, or nothing prevents that.
	Finding *vmi.Finding `json:"problem,omitempty"`
	// Pause says why the guest is paused. Nil unless Phase is Paused; then it may
	// still be nil, from a launcher of the release before.
	Pause *Pause `json:"pause,omitempty"`
	// End says how the domain ended. Nil unless Phase is Ended.
	End *End `json:"end,omitempty"`
	// Emulated says that the guest runs without hardware virtualization.
	Emulated bool `json:"emulated,omitempty"`
	// Machine is the machine type that the guest runs on.
	Machine string `json:"machine,omitempty"`
	// VSOCKCID is the number of the guest in the addresses of vsock sockets on its
	// node, from 3 on. 0: it has none, or the launcher does not say.
	VSOCKCID uint32 `json:"vsockCID,omitempty"`
	// Disks are the domain's disks.
	Disks []Disk `json:"disks,omitempty"`
	// KernelBoot identifies the kernel and the initrd of kernelBoot. Nil: the guest
	// was started by none, or the launcher does not say.
	KernelBoot *vmi.KernelBootStatus `json:"kernelBoot,omitempty"`
	// Agent is the agent in the guest. Nil: there is none, or it is not known.
	Agent *Agent `json:"agent,omitempty"`
	// Interfaces are the guest's interfaces as its agent reports them. Empty: there is
	// no agent, or it did not say.
	Interfaces []Interface `json:"interfaces,omitempty"`
	// Links are the links of the domain's interfaces. Empty: it has none, or the launcher
	// does not say.
	Links []Link `json:"links,omitempty"`
	// Credentials says whether the guest has the keys and passwords that its agent
	// writes. Nil: there are none, or they were not tried yet.
	Credentials *Credentials `json:"credentials,omitempty"`
	// Reboots is how often the guest rebooted or was reset since its domain was
	// created. 0: never, or the launcher does not count.
	Reboots int64 `json:"reboots,omitempty"`
	// Panics is how often the kernel of the guest crashed since then, as its panic
	// device reports. 0: never, or it has no such device, or the launcher does not
	// count.
	Panics int64 `json:"panics,omitempty"`
	// Frozen says that the guest's file systems are frozen. False: they are not, or
	// the launcher does not say.
	Frozen bool `json:"frozen,omitempty"`
	// NotBooted is why the guest seems not to have booted, or why it is not known whether
	// it has. Nil: it boots or has booted, or nothing is known.
	NotBooted *vmi.Finding `json:"notBooted,omitempty"`
	// Movable says that the launcher answers the calls of migrations. False: it is of a release
	// that does not.
	Movable bool `json:"movable,omitempty"`
	// Migration is the last migration that the launcher took part in. Nil: none.
	Migration *Migration `json:"migration,omitempty"`
}

// Sanitized returns the state with everything removed or shortened that does not
// fit into a status: long texts, reasons of more than one word, names that are
// none. A phase that is not known, of a newer launcher, becomes Starting: the
// guest is not reported to run. A field that is not named here is not passed on.
func (s State) Sanitized() State {
	out := State{
		Generation:  within(s.Generation, maxGeneration),
		Phase:       Starting,
		Finding:     present(s.Finding, SanitizeFinding),
		Emulated:    s.Emulated,
		Machine:     sanitizeToken(s.Machine),
		Disks:       first(maxDisks, s.Disks, Disk.sanitized),
		KernelBoot:  s.KernelBoot.DeepCopy(), // numbers
		Agent:       present(s.Agent, Agent.sanitized),
		Interfaces:  first(maxInterfaces, s.Interfaces, Interface.sanitized),
		Links:       first(maxLinks, s.Links, Link.sanitized),
		Credentials: present(s.Credentials, Credentials.sanitized),
		Reboots:     within(s.Reboots, maxCount),
		Panics:      within(s.Panics, maxCount),
		Frozen:      s.Frozen,
		NotBooted:   present(s.NotBooted, SanitizeFinding),
		Movable:     s.Movable,
		Migration:   s.Migration.sanitized(),
	}
	if slices.Contains(phases, s.Phase) {
		out.Phase = s.Phase
	}
	if minCID <= s.VSOCKCID && s.VSOCKCID <= maxCID {
		out.VSOCKCID = s.VSOCKCID
	}
	switch out.Phase {
	case Paused:
		out.Pause = present(s.Pause, Pause.sanitized)
	case Ended:
		out.End = present(s.End, End.sanitized)
	}
	return out
}

// The reasons of a NotBooted.
const (
	// ReasonNothingRead: the guest has run for long and has read next to nothing of
	// its disks.
	ReasonNothingRead = "NothingReadFromDisks"
	// ReasonNoBootableDevice: the same, and the firmware says on the serial console
	// that it has found nothing to boot from.
	ReasonNoBootableDevice = "NoBootableDevice"
	// ReasonNothingWritten: the guest has run for long, has never written to its serial
	// console, and no agent in it answers. Whether it has booted is not known.
	ReasonNothingWritten = "NothingWrittenToConsole"
)

// Phase is where a guest is in its life.
type Phase string

// The phases of a guest, in order.
const (
	// Waiting: nothing is desired yet, or the pod is a target that the guest has not
	// moved to.
	Waiting Phase = "Waiting"
	// Starting: the domain is being prepared.
	Starting Phase = "Starting"
	// Running: the guest runs.
	Running Phase = "Running"
	// Paused: the domain exists and the guest does not run.
	Paused Phase = "Paused"
	// Stopping: the guest was asked to power off.
	Stopping Phase = "Stopping"
	// Ended: the domain is gone and is not started again.
	Ended Phase = "Ended"
)

// phases are the phases that this release knows.
var phases = []Phase{Waiting, Starting, Running, Paused, Stopping, Ended}

// Pause says why a guest is paused.
type Pause struct {
	// Cause is the kind of cause.
	Cause PauseCause `json:"cause"`
	// Volume is the volume of the spec that the cause is about. Empty: none, or
	// not known.
	Volume string `json:"volume,omitempty"`
	// Message says more, for people.
	Message string `json:"message,omitempty"`
}

func (p Pause) sanitized() Pause {
	return Pause{Cause: sanitizeReason(p.Cause), Volume: sanitizeToken(p.Volume), Message: message(p.Message)}
}

// PauseCause is the kind of cause of a pause.
type PauseCause string

// The causes of a pause.
const (
	// PausedByUser: by [CallPause]. The launcher does not resume the guest by itself.
	PausedByUser PauseCause = "User"
	// PausedByIOError: a disk could not be read or written. The launcher resumes
	// the guest when the cause may be gone.
	PausedByIOError PauseCause = "IOError"
	// PausedByWatchdog: the guest's watchdog fired.
	PausedByWatchdog PauseCause = "Watchdog"
	// PausedByMigration: the guest migrates to another launcher.
	PausedByMigration PauseCause = "Migration"
	// PausedByPanic: the guest's kernel crashed and the domain is kept.
	PausedByPanic PauseCause = "Panic"
	// PausedBySignal: a signal has stopped QEMU, as SIGSTOP does, until SIGCONT.
	PausedBySignal PauseCause = "Signal"
	// PausedByUnknown: libvirt gives no cause, or one that is not listed here.
	PausedByUnknown PauseCause = "Unknown"
)

// End says how a domain ended.
type End struct {
	// Reason is the kind of end.
	Reason EndReason `json:"reason"`
	// Message says more, for people.
	Message string `json:"message,omitempty"`
	// Terminated says that the pod of the launcher was ended while the guest ran: the
	// guest was asked to power off, and not by a Desired. A launcher of before this field
	// does not say so.
	Terminated bool `json:"terminated,omitempty"`
}

// DisruptedBy is how a domain ended whose pod was ended for the reason f. It is false for
// an end that has a cause of its own, such as a crash.
func (e End) DisruptedBy(f vmi.Finding) (vmi.Finding, bool) {
	switch e.Reason {
	case Shutdown, Killed, Cancelled:
		if e.Message != "" {
			f.Message += "; " + e.Message
		}
		return f, true
	}
	return vmi.Finding{}, false
}

// sanitized is the end with a reason that a launcher has: what ends a pod from outside, as
// an eviction, is not its to say.
func (e End) sanitized() End {
	if !slices.Contains(endReasons, e.Reason) {
		e.Reason = UnknownReason
	}
	return End{Reason: e.Reason, Message: message(e.Message), Terminated: e.Terminated}
}

// EndReason is the kind of a domain's end.
type EndReason string

// The ends of a domain.
const (
	// Shutdown: the guest powered off, or was switched off without having been
	// given time to power off: it had no grace period, or it was paused.
	Shutdown EndReason = "Shutdown"
	// Killed: the grace period was over before the guest had powered off.
	Killed EndReason = "GracePeriodExceeded"
	// Crashed: QEMU or the guest crashed.
	Crashed EndReason = "Crashed"
	// CannotStart: the domain cannot be created as the spec says.
	CannotStart EndReason = "CannotStart"
	// Cancelled: a stop was asked for before the domain was created.
	Cancelled EndReason = "Cancelled"
	// MovedAway: the guest runs on in another launcher. It is no end of the VMI.
	MovedAway EndReason = "MovedAway"
	// StateMissing: the state of firmware and TPM, which was to come by a migration, is not in
	// its claim.
	StateMissing EndReason = "StateMissing"
)

// Succeeded says that the guest ran, and powered off or was switched off as it was
// asked to.
func (e EndReason) Succeeded() bool { return e == Shutdown }

// Failed says that the guest neither succeeded nor runs on elsewhere.
func (e EndReason) Failed() bool { return e != Shutdown && e != MovedAway }

// Disk is a disk of a running domain.
type Disk struct {
	// Name is the volume's name in the spec.
	Name string `json:"name"`
	// Target is the disk's name on its bus, for example vda.
	Target string `json:"target"`
	// SizeBytes is the size that the guest sees.
	SizeBytes int64 `json:"sizeBytes,omitempty"`
}

func (d Disk) sanitized() (Disk, bool) {
	ok := sanitizeToken(d.Name) != "" && len(d.Target) <= maxTarget && sanitizeToken(d.Target) != ""
	return Disk{Name: d.Name, Target: d.Target, SizeBytes: within(d.SizeBytes, maxSize)}, ok
}

// Agent is QEMU's agent in a guest, which has opened its channel.
type Agent struct {
	// Version is what it says it is, one short word. Empty: it did not say.
	Version string `json:"version,omitempty"`
}

func (a Agent) sanitized() Agent { return Agent{Version: sanitizeToken(a.Version)} }

// Credentials says whether the guest has the keys and passwords that its agent writes.
type Credentials struct {
	// Failure is why it does not have all of them, for people. Empty: it has them.
	Failure string `json:"failure,omitempty"`
	// Note is what looks wrong in them and was passed on as it is, for people. Empty:
	// nothing.
	Note string `json:"note,omitempty"`
}

func (c Credentials) sanitized() Credentials {
	return Credentials{Failure: message(c.Failure), Note: message(c.Note)}
}

// Interface is a network interface of a guest, as its agent reports it: the guest may
// say what it likes.
type Interface struct {
	// Name is its name in the guest, for example eth0.
	Name string `json:"name,omitempty"`
	// MAC is its address.
	MAC string `json:"mac"`
	// Addresses are its addresses, without the lengths of their networks.
	Addresses []string `json:"addresses,omitempty"`
}

// sanitized is the interface without the addresses that are none. One without a MAC
// address is none.
func (i Interface) sanitized() (Interface, bool) {
	return Interface{Name: shortName(i.Name), MAC: strings.ToLower(i.MAC), Addresses: first(maxAddresses, i.Addresses, sanitizeAddress)}, mac.MatchString(i.MAC)
}

func sanitizeAddress(s string) (string, bool) {
	a, err := netip.ParseAddr(s)
	return a.String(), err == nil && a.Zone() == ""
}

// Link is the link of a domain's interface: the cable that the guest sees.
type Link struct {
	// Name is the interface's name in the spec.
	Name string `json:"name"`
	// State is up or down.
	State string `json:"state"`
}

func (l Link) sanitized() (Link, bool) {
	known := l.State == string(vmi.InterfaceUp) || l.State == string(vmi.InterfaceDown)
	return l, known && len(l.Name) <= maxMessage
}
