package process

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestTheOutputOfADaemonIsTheSameEachTime(t *testing.T) {
	d := NewDaemon(Config{})
	d.log(strings.NewReader("2026-11-21 20:20:49.355+0000: 36: info : libvirt version: 9.0.0\n" +
		"2026-11-21 20:20:49.360+0000: 41: error : virGDBusGetSystemBus:99 : no bus: at 12:00\n"))
	require.Equal(t, "error : virGDBusGetSystemBus:99 : no bus: at 12:00", d.Output())
	d.log(strings.NewReader("libvirtd: cannot open shared object file\n"))
	require.Equal(t, "libvirtd: cannot open shared object file", d.Output())
}

func TestTheFailureOfADaemonHoldsItsLastOutput(t *testing.T) {
	d := NewDaemon(Config{})
	require.Empty(t, d.Failure())
	d.ended(errors.New("libvirtd ended with exit code 1"))
	require.Equal(t, "libvirtd ended with exit code 1", d.Failure())
	d.log(strings.NewReader("no bus\n"))
	d.ended(errors.New("libvirtd ended with exit code 1"))
	require.Equal(t, `libvirtd ended with exit code 1; its last output is "no bus"`, d.Failure())
}

func TestHowAProcessEndedIsASentence(t *testing.T) {
	for status, want := range map[unix.WaitStatus]string{
		0:      "ended with exit code 0",
		7 << 8: "ended with exit code 7",
		9:      "was killed by signal 9 (killed), as the kernel does when the memory of a pod is used up",
		11:     "was killed by signal 11 (segmentation fault)",
	} {
		require.Equal(t, want, Ended(status))
	}
}
