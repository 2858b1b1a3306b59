package supervisor

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatADaemonSaidLastIsTheSameEachTime(t *testing.T) {
	d := &daemon{logger: slog.New(slog.DiscardHandler)}
	d.listen(strings.NewReader("2026-11-21 20:20:49.355+0000: 36: info : libvirt version: 9.0.0\n" +
		"2026-11-21 20:20:49.360+0000: 41: error : virGDBusGetSystemBus:99 : no bus: at 12:00\n"))
	require.Equal(t, "error : virGDBusGetSystemBus:99 : no bus: at 12:00", d.said())
	d.listen(strings.NewReader("libvirtd: cannot open shared object file\n"))
	require.Equal(t, "libvirtd: cannot open shared object file", d.said())
}

func TestADaemonThatIsNotThereIsSaid(t *testing.T) {
	s := &Supervisor{daemon: &daemon{last: "no bus"}, session: &session{ready: make(chan struct{})}}
	_, err := s.patiently(t.Context(), 0)
	require.EqualError(t, err, "wait for the libvirt daemon: it has not answered within 0s and last said \"no bus\"")
}
