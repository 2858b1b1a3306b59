package libvirt

import (
	"testing"

	"github.com/stretchr/testify/require"
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/launcher/protocol"
)

// definitions are the features of models.
var definitions = map[string][]string{
	"Penryn": {"sse4.1"}, "Haswell": {"sse4.1", "aes", "x2apic", "mpx"}, "n270": {"monitor"}, "EPYC": {"sse4.1", "aes", "vme"},
}

func defined(p libvirtxml.CapsHostCPU) ([]string, error) {
	all := append([]string(nil), definitions[p.Model]...)
	for _, f := range p.FeatureFlags {
		all = append(all, f.Name)
	}
	return all, nil
}

func TestGuestsWithKVMHaveWhatTheHostHasAndKVMAdds(t *testing.T) {
	const xml = `<capabilities><host><cpu><arch>x86_64</arch><model>Penryn</model><vendor>Intel</vendor>
  <feature name='aes'/><feature name='monitor'/><feature name='invtsc'/></cpu></host></capabilities>`
	p, err := native(xml, []string{"n270", "Haswell", "Penryn", "EPYC", "unknown"}, defined)
	require.NoError(t, err)
	require.Equal(t, protocol.Processor{
		Vendor: "Intel", HostModel: "Penryn", HostModelFeatures: []string{"aes"}, Models: []string{"Haswell", "Penryn"},
		Features: []string{"aes", "arat", "hypervisor", "sse4.1", "tsc-deadline", "tsc_adjust", "x2apic"},
	}, p)
	p, err = native("<capabilities><host/></capabilities>", []string{"Penryn"}, defined)
	require.NoError(t, err)
	require.Zero(t, p, "libvirt does not know the processor")
	_, err = native("<", nil, defined)
	require.ErrorContains(t, err, "read the capabilities")
}

func TestEmulatedGuestsHaveWhatQEMUEmulates(t *testing.T) {
	const xml = `<domainCapabilities><arch>x86_64</arch><cpu>
  <mode name='maximum' supported='yes'/>
  <mode name='host-model' supported='yes'><model fallback='forbid'>EPYC</model><vendor>AMD</vendor>
    <feature policy='require' name='pku'/><feature policy='disable' name='vme'/></mode>
  <mode name='custom' supported='yes'><model usable='yes'>qemu64</model><model usable='no'>Haswell</model><model usable='yes'>Penryn</model></mode>
</cpu></domainCapabilities>`
	p, err := emulation(xml, defined)
	require.NoError(t, err)
	require.Equal(t, protocol.Processor{
		Vendor: "AMD", HostModel: "EPYC", HostModelFeatures: []string{"pku"}, Models: []string{"Penryn", "qemu64"},
		Features: []string{"aes", "pku", "sse4.1"},
	}, p)
	p, err = emulation("<domainCapabilities/>", defined)
	require.NoError(t, err)
	require.Zero(t, p)
	_, err = emulation("<", defined)
	require.ErrorContains(t, err, "read what domains can have")
}
