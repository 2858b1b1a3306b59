package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/libvirt"
)

const (
	// forStatus is how long to wait for QEMU's exit status when libvirt has said
	// that it ended. It says more about a crash, but nothing depends on it.
	forStatus = time.Second
	// forEvent is how long to wait for libvirt's event when QEMU has ended. It
	// alone tells a guest that powered off, and a daemon that runs sends it
	// however busy the node is.
	forEvent = 15 * time.Second
)

// ended notes one witness of the domain's end. The domain is gone when both are
// there, or when the second is late.
func (s *Supervisor) ended(witness func(*facts)) {
	s.facts.change(func(f *facts) {
		first := f.event == "" && f.status == nil
		witness(f)
		switch {
		case f.domain == launcher.Gone, f.domain == launcher.Absent:
		case f.event != "" && f.status != nil:
			s.gone(f)
		case first:
			wait := forEvent
			if f.status == nil {
				wait = forStatus
			}
			time.AfterFunc(wait, func() { s.facts.change(s.gone) })
		}
	})
}

// gone makes the domain gone if there is a witness and the start is over.
func (s *Supervisor) gone(f *facts) {
	if f.event == "" && f.status == nil || f.domain != launcher.Running && f.domain != launcher.Paused {
		return
	}
	f.domain = launcher.Gone
	event := f.event
	if event == libvirt.PoweredOff && f.interrupted {
		event = libvirt.Destroyed
	}
	f.exit = exit(event, f.status)
	if f.exit.Cause == launcher.Crashed {
		if said := lastWords(s.daemon.qemuLog(s.domainName())); said != "" {
			f.exit.Message += "; QEMU's last words: " + said
		}
	}
}

// exit is how a domain went, from libvirt's event and QEMU's exit status, of
// which one may be missing.
func exit(event libvirt.EventKind, status *unix.WaitStatus) launcher.Exit {
	switch {
	case event == libvirt.PoweredOff:
		return launcher.Exit{Cause: launcher.PoweredOff, Message: "the guest powered off"}
	case event == libvirt.Destroyed:
		return launcher.Exit{Cause: launcher.Destroyed, Message: "the domain was destroyed from outside"}
	case status == nil:
		return launcher.Exit{Cause: launcher.Crashed, Message: "QEMU ended unexpectedly"}
	case event == "" && status.Exited() && status.ExitStatus() == 0:
		// QEMU leaves on a signal only: when a guest powers off, it waits for
		// libvirt.
		return launcher.Exit{Cause: launcher.Destroyed, Message: "QEMU was asked to end from outside"}
	default:
		return launcher.Exit{Cause: launcher.Crashed, Message: "QEMU " + ended(*status)}
	}
}

// ended says how a process ended.
func ended(s unix.WaitStatus) string {
	switch {
	case s.Signaled() && s.Signal() == unix.SIGKILL:
		return "was killed by signal 9 (killed), as the kernel does when the memory of a pod is used up"
	case s.Signaled():
		return fmt.Sprintf("was killed by signal %d (%s)", s.Signal(), s.Signal())
	default:
		return fmt.Sprintf("ended with exit code %d", s.ExitStatus())
	}
}

// lastWords are the last lines that QEMU wrote to its log, on one line. What
// libvirt writes there, QEMU's command line for one, is left out.
func lastWords(path string) string {
	const most, lines = 4 << 10, 4
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	b := make([]byte, most)
	n, err := f.ReadAt(b, max(0, info.Size()-most))
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	var words []string
	for line := range strings.Lines(string(b[:n])) {
		line = strings.TrimSpace(line)
		if strings.HasSuffix(line, ` \`) || strings.HasSuffix(line, "-msg timestamp=on") {
			words = nil // the command line goes on to here
			continue
		}
		if line != "" && !strings.Contains(line, ": shutting down, reason=") {
			words = append(words, line)
		}
	}
	return strings.Join(words[max(0, len(words)-lines):], "; ")
}

// oneLine is a text without line breaks.
func oneLine(s string) string { return strings.Join(strings.FieldsFunc(s, isBreak), "; ") }

func isBreak(r rune) bool { return r == '\n' || r == '\r' }
