package supervisor

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/internal/launcher/process"
	"github.com/podvisor/podvisor/launcher"
)

// A file that is slow to read, such as one on a disk that hangs, stops no call that only
// asks what is known. The log is gone here as soon as the facts are locked.
func TestNoFileIsReadUnderTheLockOfTheFacts(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "cache/libvirt/qemu/log/ns_vm.log")
	require.NoError(t, os.MkdirAll(filepath.Dir(log), 0o755))
	require.NoError(t, os.WriteFile(log, []byte("qemu: abort\n"), 0o600))
	s := &Supervisor{config: Config{Namespace: "ns", Name: "vm"}, facts: newFacts(), daemon: process.NewDaemon(process.Config{Dir: dir})}
	s.facts.domain, s.facts.event = launcher.Running, libvirt.Failed
	s.ended(func(f *facts) {
		require.False(t, f.mu.TryLock(), "the facts are locked")
		require.NoError(t, os.Remove(log))
		f.status = new(unix.WaitStatus(6))
	})
	require.Equal(t, launcher.Gone, s.facts.domain)
	require.Contains(t, s.facts.exit.Message, "QEMU's last messages: qemu: abort")
}

func TestHowADomainEndedFollowsFromItsReports(t *testing.T) {
	code := func(n int) *unix.WaitStatus { return new(unix.WaitStatus(n << 8)) }
	signal := func(n int) *unix.WaitStatus { return new(unix.WaitStatus(n)) }
	for name, tt := range map[string]struct {
		event   libvirt.EventKind
		status  *unix.WaitStatus
		cause   launcher.Cause
		message string
	}{
		"powered off":                        {libvirt.PoweredOff, code(0), launcher.PoweredOff, "powered off"},
		"powered off, and killed by libvirt": {libvirt.PoweredOff, signal(9), launcher.PoweredOff, "powered off"},
		"destroyed":                          {libvirt.Destroyed, code(0), launcher.Destroyed, "destroyed"},
		"moved away":                         {libvirt.MovedAway, code(0), launcher.MovedAway, "another pod"},
		"killed":                             {libvirt.Failed, signal(9), launcher.Crashed, "signal 9 (killed), as the kernel does when the memory"},
		"killed, with no event":              {"", signal(11), launcher.Crashed, "signal 11 (segmentation fault)"},
		"an exit code":                       {libvirt.Failed, code(1), launcher.Crashed, "exit code 1"},
		"no status":                          {libvirt.Failed, nil, launcher.Crashed, "unexpectedly"},
		"ended by a signal, with no event":   {"", code(0), launcher.Destroyed, "from outside"},
	} {
		t.Run(name, func(t *testing.T) {
			got := exit(tt.event, tt.status)
			require.Equal(t, tt.cause, got.Cause)
			require.Contains(t, got.Message, tt.message)
		})
	}
}

// Seen on a busy host: the daemon was killed, the guest powered off, and the next daemon lost its
// connection to QEMU, which it had asked to end, before it had taken the domain over.
func TestAGuestThatHasPoweredOffIsOffAlsoIfTheDaemonSaysSoLast(t *testing.T) {
	s := &Supervisor{
		config: Config{Namespace: "ns", Name: "vm", Logger: slog.New(slog.DiscardHandler)}, facts: newFacts(),
		daemon: process.NewDaemon(process.Config{Dir: t.TempDir()}),
	}
	s.facts.domain = launcher.Running
	s.ended(func(f *facts) { f.status = new(unix.WaitStatus) })
	require.Equal(t, launcher.Running, s.facts.domain)
	s.happened(libvirt.Event{Domain: "ns_vm", Kind: libvirt.ShutDown})
	require.Equal(t, launcher.Gone, s.facts.domain)
	require.Equal(t, launcher.PoweredOff, s.facts.exit.Cause)
}

func TestADomainThatLibvirtDoesNotKnowAnyMoreHasEnded(t *testing.T) {
	for name, tt := range map[string]struct {
		f     *facts
		cause launcher.Cause
	}{
		"nothing is known of its end": {&facts{}, launcher.Crashed},
		"its guest had powered off":   {&facts{off: true}, launcher.PoweredOff},
		"it was destroyed":            {&facts{off: true, event: libvirt.Destroyed}, launcher.Destroyed},
		"QEMU has crashed":            {&facts{off: true, status: new(unix.WaitStatus(11))}, launcher.Crashed},
	} {
		t.Run(name, func(t *testing.T) {
			tt.f.domain = launcher.Running
			tt.f.vanished()
			tt.f.gone(qemuLog{})
			require.Equal(t, launcher.Gone, tt.f.domain)
			require.Equal(t, tt.cause, tt.f.exit.Cause)
		})
	}
}

// libvirt says that a domain has ended up to a fifth of a second after QEMU has.
func TestTheEndOfAQEMUWhoseGuestHasPoweredOffWaitsForNoOtherReport(t *testing.T) {
	for name, tt := range map[string]struct {
		events []libvirt.EventKind
		status unix.WaitStatus
		want   launcher.Domain
		cause  launcher.Cause
	}{
		"the guest has powered off":                {[]libvirt.EventKind{libvirt.ShutDown}, 0, launcher.Gone, launcher.PoweredOff},
		"and QEMU got a signal to end":             {[]libvirt.EventKind{libvirt.ShutDown, libvirt.Interrupted}, 0, launcher.Gone, launcher.Destroyed},
		"and was started anew":                     {[]libvirt.EventKind{libvirt.ShutDown, libvirt.Resumed}, 0, launcher.Running, ""},
		"and QEMU crashed":                         {[]libvirt.EventKind{libvirt.ShutDown}, 11, launcher.Running, ""},
		"and QEMU failed":                          {[]libvirt.EventKind{libvirt.ShutDown}, 1 << 8, launcher.Running, ""},
		"the guest has not powered off":            {nil, 0, launcher.Running, ""},
		"what libvirt says of the end counts more": {[]libvirt.EventKind{libvirt.ShutDown, libvirt.Destroyed}, 0, launcher.Gone, launcher.Destroyed},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Supervisor{
				config: Config{Namespace: "ns", Name: "vm", Logger: slog.New(slog.DiscardHandler)}, facts: newFacts(),
				daemon: process.NewDaemon(process.Config{Dir: t.TempDir()}),
			}
			s.facts.domain = launcher.Running
			for _, e := range tt.events {
				s.happened(libvirt.Event{Domain: "ns_vm", Kind: e})
			}
			s.ended(func(f *facts) { f.status = &tt.status })
			require.Equal(t, tt.want, s.facts.domain)
			require.Equal(t, tt.cause, s.facts.exit.Cause)
		})
	}
}
