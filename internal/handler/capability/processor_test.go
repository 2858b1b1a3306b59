package capability

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi/config"
)

var processor = protocol.Processor{
	Vendor: "Intel", Models: []string{"Haswell", "qemu64"}, Features: []string{"aes", "sse4.2"},
	HostModel: "Skylake-Client", HostModelFeatures: []string{"aes"},
}

func TestANodeIsLabelledWithWhatItsGuestsCanHave(t *testing.T) {
	t.Parallel()
	guests := map[string]string{
		"cpu-model.node.kubevirt.io/Haswell": "true", "cpu-model-migration.node.kubevirt.io/Haswell": "true",
		"cpu-feature.node.kubevirt.io/aes": "true", "cpu-feature.node.kubevirt.io/sse4.2": "true", "cpu-vendor.node.kubevirt.io/Intel": "true",
	}
	require.Equal(t, guests, emulatedLabels(processor, map[string]bool{"qemu64": true, "Skylake-Client": true}))

	guests["host-model-cpu.node.kubevirt.io/Skylake-Client"] = "true"
	guests["cpu-model-migration.node.kubevirt.io/Skylake-Client"] = "true"
	guests["host-model-required-features.node.kubevirt.io/aes"] = "true"
	require.Equal(t, guests, nativeLabels(processor, map[string]bool{"qemu64": true, "Haswell": false}))

	guests["node-labeller.kubevirt.io/obsolete-host-model"] = "true"
	require.Equal(t, guests, nativeLabels(processor, map[string]bool{"qemu64": true, "Skylake-Client": true}))
	for k := range guests {
		require.True(t, IsProcessorLabel(k), k)
	}
	require.False(t, IsProcessorLabel("kubevirt.io/schedulable"))
	require.Empty(t, nativeLabels(protocol.Processor{}, nil))
}

func TestTheLabelsOfANodeAreOfTheWayInWhichItsGuestsRun(t *testing.T) {
	t.Parallel()
	all := protocol.Processors{Native: protocol.Processor{Models: []string{"Haswell"}}, Emulated: protocol.Processor{Models: []string{"Westmere", "qemu64"}}}
	native := map[string]string{"cpu-model.node.kubevirt.io/Haswell": "true", "cpu-model-migration.node.kubevirt.io/Haswell": "true"}
	emulated := map[string]string{"cpu-model.node.kubevirt.io/Westmere": "true", "cpu-model-migration.node.kubevirt.io/Westmere": "true"}
	for name, tt := range map[string]struct {
		hasKVM, emulated bool
		config           *bool
		want             map[string]string
	}{
		"KVM":                                {hasKVM: true, want: native},
		"emulation, also where there is KVM": {hasKVM: true, emulated: true, want: emulated},
		"emulation by the configuration":     {hasKVM: true, config: new(true), want: emulated},
		"the configuration wins":             {hasKVM: true, emulated: true, config: new(false), want: native},
		"neither":                            {want: map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, ProcessorLabels(all, tt.hasKVM, tt.emulated, config.Config{Pods: config.Pods{Emulation: tt.config}}))
		})
	}
}
