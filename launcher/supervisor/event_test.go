package supervisor

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/libvirt"
	"github.com/podvisor/podvisor/launcher/process"
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
			s.facts.change(s.started)
			require.Equal(t, tt.want, s.facts.domain)
		})
	}
}
