package supervisor

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/internal/launcher/process"
	"github.com/podvisor/podvisor/launcher"
)

const (
	// forStatus is how long to wait for QEMU's exit status when libvirt has said
	// that it ended. It says more about a crash, but nothing depends on it.
	forStatus = time.Second
	// forEvent is how long to wait for libvirt's event when QEMU has ended. It
	// alone distinguishes a guest that powered off, and a daemon that runs sends it
	// however busy the node is.
	forEvent = 15 * time.Second
)

// poweredOff is libvirt's reason for the end of a domain whose guest powered off.
const poweredOff = "shutdown"

// panicked is how a domain ended whose guest's kernel crashed, which libvirt reports
// before it ends QEMU.
const panicked = "the kernel of the guest panicked; the guest's console says why"

// expired is how a domain ended whose watchdog powered it off: QEMU leaves then with
// exit code 0, which libvirt takes for a crash.
const expired = "the guest did not reset its watchdog in time, and the watchdog powered it off"

// qemuLog is what the log of a domain's QEMU says of its end. It is read before the
// facts are locked: a file may take long to read.
type qemuLog struct {
	// reason is why QEMU ended, as libvirt says it. Empty: it has not said that.
	reason string
	// messages are the last ones of QEMU.
	messages string
}

func (s *Supervisor) qemuLog() qemuLog {
	name := s.domainName()
	return qemuLog{s.daemon.QEMUReason(name), s.daemon.QEMUMessages(name)}
}

// ended notes one of the two reports of the domain's end, libvirt's event and QEMU's
// exit status.
func (s *Supervisor) ended(report func(*facts)) {
	log := s.qemuLog()
	s.facts.change(func(f *facts) {
		report(f)
		if f.domain != launcher.Gone && f.domain != launcher.Absent {
			s.settleEnd(f, log)
		}
	})
}

// settleEnd makes the domain gone when both reports of its end are there, or when the
// second is late. It does nothing as long as there is none.
func (s *Supervisor) settleEnd(f *facts, log qemuLog) {
	wait := forStatus
	switch {
	case f.event == "" && f.status == nil:
		return
	case f.event == "" && f.off && f.status.Exited() && f.status.ExitStatus() == 0:
		// libvirt may look for a fifth of a second whether QEMU is gone before it says so.
		f.event = libvirt.PoweredOff
		f.gone(log)
		return
	case f.unexplained():
	case f.event != "" && f.status != nil:
		f.gone(log)
		return
	case f.status != nil:
		wait = forEvent
	}
	time.AfterFunc(wait, s.late)
}

// unexplained says that QEMU left by itself, which it does for a watchdog alone,
// and that the watchdog's event has not come: libvirt sends it first, but events of
// different kinds may overtake each other on their way.
func (f *facts) unexplained() bool {
	return f.event == libvirt.Failed && f.status != nil && f.status.Exited() && f.status.ExitStatus() == 0 && f.observed.Panics == 0 && !f.watchdog
}

// vanished notes that libvirt does not know the domain any more. Without an exit status of QEMU
// nothing else will say that it ended.
func (f *facts) vanished() {
	switch {
	case f.event != "" || f.status != nil:
	case f.off:
		f.event = libvirt.PoweredOff
	default:
		f.event = libvirt.Failed
	}
}

// late makes the domain gone without waiting for a second report any longer.
func (s *Supervisor) late() {
	log := s.qemuLog()
	s.facts.change(func(f *facts) { f.gone(log) })
}

// gone makes the domain gone if its end was reported and the start is over.
func (f *facts) gone(log qemuLog) {
	if f.event == "" && f.status == nil || f.domain != launcher.Running && f.domain != launcher.Paused {
		return
	}
	f.domain = launcher.Gone
	if f.moved {
		f.exit = exit(libvirt.MovedAway, nil)
		return
	}
	event := f.event
	if event == "" && log.reason == poweredOff {
		event = libvirt.PoweredOff // and the event came before a session that would see it
	}
	if event == libvirt.PoweredOff && f.interrupted {
		event = libvirt.Destroyed
	}
	f.exit = exit(event, f.status)
	switch {
	case event == libvirt.Failed && f.observed.Panics > 0:
		f.exit.Message = panicked
		return
	case event == libvirt.Failed && f.watchdog:
		f.exit.Message = expired
		return
	}
	// A QEMU that was killed has written nothing about that: its last messages are of before.
	killed := f.status != nil && f.status.Signaled() && f.status.Signal() == unix.SIGKILL
	if f.exit.Cause == launcher.Crashed && log.messages != "" && !killed {
		f.exit.Message += "; QEMU's last messages: " + log.messages
	}
}

// exit is how a domain ended, from libvirt's event and QEMU's exit status, of
// which one may be missing.
func exit(event libvirt.EventKind, status *unix.WaitStatus) launcher.Exit {
	switch {
	case event == libvirt.PoweredOff:
		return launcher.Exit{Cause: launcher.PoweredOff, Message: "the guest powered off"}
	case event == libvirt.MovedAway:
		return launcher.Exit{Cause: launcher.MovedAway, Message: "the guest runs in another pod"}
	case event == libvirt.Destroyed:
		return launcher.Exit{Cause: launcher.Destroyed, Message: "the domain was destroyed from outside"}
	case status == nil:
		return launcher.Exit{Cause: launcher.Crashed, Message: "QEMU ended unexpectedly"}
	case event == "" && status.Exited() && status.ExitStatus() == 0:
		// QEMU leaves on a signal only: when a guest powers off, it waits for
		// libvirt.
		return launcher.Exit{Cause: launcher.Destroyed, Message: "QEMU was asked to end from outside"}
	default:
		return launcher.Exit{Cause: launcher.Crashed, Message: "QEMU " + process.Ended(*status)}
	}
}
