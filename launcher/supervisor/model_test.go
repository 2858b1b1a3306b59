package supervisor

import (
	"testing"

	"github.com/stretchr/testify/require"
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/storage"
)

// libvirt writes into a domain that runs what QEMU made of its processor.
func TestAnEmulatedGuestHasTheWholeProcessorOfItsDomain(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	p.run()
	v := instance()
	h := domain.Host{AllowEmulation: true, Disks: map[string]domain.Disk{}}
	for _, d := range v.Spec.Domain.Devices.Disks {
		h.Disks[d.Name] = domain.Disk{Attachment: storage.Attachment{Name: d.Name, Path: "/" + d.Name, Format: storage.Raw}}
	}
	want, err := domain.Build(v, h)
	require.NoError(t, err)
	got := p.running().CPU
	require.Equal(t, want.CPU.Model, got.Model)
	require.ElementsMatch(t, lacking(want.CPU), lacking(got), "what the model has and the guest has not")
}

// lacking are the features that a processor has not.
func lacking(c *libvirtxml.DomainCPU) []string {
	var out []string
	for _, f := range c.Features {
		if f.Policy == "disable" {
			out = append(out, f.Name)
		}
	}
	return out
}
