package supervisor

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/internal/launcher/process"
	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/protocol"
)

func TestEventsDuringAStartCount(t *testing.T) {
	causes := map[libvirt.EventKind]protocol.PauseCause{libvirt.Suspended: protocol.PausedByWatchdog}
	ended, cancel := context.WithCancel(t.Context())
	cancel() // so that the events wait for no session
	for _, tt := range []struct {
		name   string
		events []libvirt.EventKind
		want   launcher.Domain
	}{
		{"nothing", nil, launcher.Running},
		{"the guest runs", []libvirt.EventKind{libvirt.Started, libvirt.Resumed}, launcher.Running},
		{"the guest was paused at once", []libvirt.EventKind{libvirt.Started, libvirt.Resumed, libvirt.Suspended}, launcher.Paused},
		{"and runs again", []libvirt.EventKind{libvirt.Started, libvirt.Suspended, libvirt.Resumed}, launcher.Running},
		{"the guest has powered off already", []libvirt.EventKind{libvirt.Started, libvirt.PoweredOff}, launcher.Gone},
		{"what the start before left has ended", []libvirt.EventKind{libvirt.Suspended, libvirt.Destroyed, libvirt.Started}, launcher.Running},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &Supervisor{config: Config{Namespace: "ns", Name: "vm", Logger: slog.New(slog.DiscardHandler)}, facts: newFacts(), daemon: process.NewDaemon(process.Config{Dir: t.TempDir()}), session: &session{ready: make(chan struct{})}, inner: ended}
			s.facts.domain = launcher.Starting
			for _, e := range tt.events {
				s.happened(libvirt.Event{Domain: "ns_vm", Kind: e, Pause: causes[e]})
				s.happened(libvirt.Event{Domain: "ns_other", Kind: libvirt.Failed})
			}
			s.facts.change(func(f *facts) { s.started(f, created{}, s.qemuLog()) })
			if tt.want == launcher.Gone {
				s.ended(func(f *facts) { f.status = new(unix.WaitStatus) }) // the second report
			}
			require.Equal(t, tt.want, s.facts.domain)
		})
	}
}

// A daemon that is started in the place of one that ended may end a QEMU whose guest has
// powered off before a session with it can see that.
func TestAnEndWithoutAnEventIsWhatLibvirtsLogSays(t *testing.T) {
	for _, tt := range []struct {
		name, log string
		event     libvirt.EventKind
		want      launcher.Cause
	}{
		{"the guest powered off", "a line of QEMU's\n2026-11-22 23:45:41.660+0000: shutting down, reason=shutdown\n", "", launcher.PoweredOff},
		{"the domain was destroyed", "2026-11-22 23:45:41.660+0000: shutting down, reason=destroyed\n", "", launcher.Destroyed},
		{"an event says more", "2026-11-22 23:45:41.660+0000: shutting down, reason=shutdown\n", libvirt.Destroyed, launcher.Destroyed},
		{"an earlier start ended so", "2026-11-22 23:45:41.660+0000: shutting down, reason=shutdown\na line of QEMU's\n", "", launcher.Destroyed},
		{"nothing", "", "", launcher.Destroyed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			log := filepath.Join(dir, "cache/libvirt/qemu/log/ns_vm.log")
			require.NoError(t, os.MkdirAll(filepath.Dir(log), 0o755))
			require.NoError(t, os.WriteFile(log, []byte(tt.log), 0o644))
			s := &Supervisor{config: Config{Namespace: "ns", Name: "vm"}, facts: newFacts(), daemon: process.NewDaemon(process.Config{Dir: dir})}
			s.facts.domain, s.facts.event, s.facts.status = launcher.Running, tt.event, new(unix.WaitStatus)
			s.late()
			require.Equal(t, tt.want, s.facts.exit.Cause)
		})
	}
}
