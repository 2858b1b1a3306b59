package supervisor

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/libvirt"
)

func TestWhatIsSaidDuringAStartCounts(t *testing.T) {
	for _, tt := range []struct {
		name   string
		events []libvirt.EventKind
		want   launcher.Domain
	}{
		{"nothing", nil, launcher.Running},
		{"the guest runs", []libvirt.EventKind{libvirt.Started, libvirt.Resumed}, launcher.Running},
		{"the guest was paused at once", []libvirt.EventKind{libvirt.Started, libvirt.Resumed, libvirt.Suspended}, launcher.Paused},
		{"and goes on", []libvirt.EventKind{libvirt.Started, libvirt.Suspended, libvirt.Resumed}, launcher.Running},
		{"the guest is over already", []libvirt.EventKind{libvirt.Started, libvirt.PoweredOff}, launcher.Gone},
		{"what the start before left is over", []libvirt.EventKind{libvirt.Suspended, libvirt.Destroyed, libvirt.Started}, launcher.Running},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &Supervisor{config: Config{Namespace: "ns", Name: "vm", Logger: slog.New(slog.DiscardHandler)}, facts: newFacts(), daemon: &daemon{dir: t.TempDir()}}
			s.facts.domain = launcher.Starting
			for _, e := range tt.events {
				s.happened(libvirt.Event{Domain: "ns_vm", Kind: e})
				s.happened(libvirt.Event{Domain: "ns_other", Kind: libvirt.Failed})
			}
			s.facts.change(s.started)
			require.Equal(t, tt.want, s.facts.domain)
		})
	}
}
