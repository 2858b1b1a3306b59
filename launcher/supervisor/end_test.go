package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/libvirt"
)

func TestHowADomainWentFollowsFromItsWitnesses(t *testing.T) {
	code := func(n int) *unix.WaitStatus { return new(unix.WaitStatus(n << 8)) }
	signal := func(n int) *unix.WaitStatus { return new(unix.WaitStatus(n)) }
	for name, tt := range map[string]struct {
		event   libvirt.EventKind
		status  *unix.WaitStatus
		cause   launcher.Cause
		message string
	}{
		"powered off":                         {libvirt.PoweredOff, code(0), launcher.PoweredOff, "powered off"},
		"powered off, and libvirt was rough":  {libvirt.PoweredOff, signal(9), launcher.PoweredOff, "powered off"},
		"destroyed":                           {libvirt.Destroyed, code(0), launcher.Destroyed, "destroyed"},
		"killed":                              {libvirt.Failed, signal(9), launcher.Crashed, "signal 9 (killed), as the kernel does when the memory"},
		"killed with nobody else to tell":     {"", signal(11), launcher.Crashed, "signal 11 (segmentation fault)"},
		"an exit code":                        {libvirt.Failed, code(1), launcher.Crashed, "exit code 1"},
		"libvirt alone knows":                 {libvirt.Failed, nil, launcher.Crashed, "unexpectedly"},
		"asked to end with nobody to tell by": {"", code(0), launcher.Destroyed, "from outside"},
	} {
		t.Run(name, func(t *testing.T) {
			got := exit(tt.event, tt.status)
			require.Equal(t, tt.cause, got.Cause)
			require.Contains(t, got.Message, tt.message)
		})
	}
}

func TestQEMUsLastWordsAreItsOwn(t *testing.T) {
	p := filepath.Join(t.TempDir(), "log")
	for log, want := range map[string]string{
		"2026-11-20 18:02:39.950+0000: starting up libvirt version: 9.0.0\nLC_ALL=C \\\n/usr/bin/qemu \\\n-msg timestamp=on\n2026-11-20 18:02:39.950+0000: shutting down, reason=crashed\n": "",
		"/usr/bin/qemu \\\n-msg timestamp=on\nqemu: it hurts\ndouble free\n2026: shutting down, reason=crashed\n":                                                                           "qemu: it hurts; double free",
		strings.Repeat("old\n", 5000) + "a\nb\r\nc\nd": "a; b; c; d",
	} {
		require.NoError(t, os.WriteFile(p, []byte(log), 0o600))
		require.Equal(t, want, lastWords(p))
	}
	require.Empty(t, lastWords(p+"x"))
}

func TestTheWordsOfTheLauncherAreThoseOfTheProtocol(t *testing.T) {
	for ours, theirs := range map[launcher.Phase]control.Phase{
		launcher.PhaseWaiting: control.Waiting, launcher.PhaseStarting: control.Starting, launcher.PhaseRunning: control.Running,
		launcher.PhasePaused: control.Paused, launcher.PhaseStopping: control.Stopping, launcher.PhaseEnded: control.Ended,
	} {
		require.Equal(t, theirs, control.Phase(ours))
	}
	for ours, theirs := range map[launcher.Reason]control.EndReason{
		launcher.ReasonShutdown: control.Shutdown, launcher.ReasonKilled: control.Killed, launcher.ReasonCrashed: control.Crashed,
		launcher.ReasonNeverStarted: control.NeverStarted, launcher.ReasonCancelled: control.Cancelled,
	} {
		require.Equal(t, theirs, control.EndReason(ours))
	}
}
