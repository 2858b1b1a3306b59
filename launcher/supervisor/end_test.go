package supervisor

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/libvirt"
)

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
