package domain

import (
	"testing"

	"github.com/stretchr/testify/require"
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

func TestTheProcessorOfAnEmulatedGuestIsTheSameWithEveryQEMU(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"", vmi.CPUModelHost, vmi.CPUModelPassthrough} {
		v := instance(processor(model))
		d, err := Build(v, host(v, emulated))
		require.NoError(t, err)
		require.Equal(t, "custom", d.CPU.Mode, model)
		require.Equal(t, &libvirtxml.DomainCPUModel{Fallback: "forbid", Value: emulatedCPU}, d.CPU.Model, model)
		require.Equal(t, "partial", d.CPU.Check, "a QEMU that cannot emulate a feature says so and leaves nothing out")
		require.Equal(t, without(notEmulated...), d.CPU.Features, model)
	}
}

func TestWhatASpecSaysOfAFeatureTakesThePlaceOfWhatTheModelSays(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		model   string
		feature vmi.CPUFeature
		change  []func(*Host)
	}{
		"a feature that emulation leaves out by default": {"", vmi.CPUFeature{Name: "sha-ni"}, []func(*Host){emulated}},
		"one that it has":                   {"", vmi.CPUFeature{Name: "avx2", Policy: vmi.CPUFeatureDisable}, []func(*Host){emulated}},
		"one that a named model leaves out": {"Skylake-Client", vmi.CPUFeature{Name: mpx, Policy: vmi.CPUFeatureForce}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := instance(func(v *vmi.VirtualMachineInstance) {
				v.Spec.Domain.CPU = &vmi.CPU{Model: tt.model, Features: []vmi.CPUFeature{tt.feature}}
			})
			d, err := Build(v, host(v, tt.change...))
			require.NoError(t, err)
			policies := map[string][]string{}
			for _, f := range d.CPU.Features {
				policies[f.Name] = append(policies[f.Name], f.Policy)
			}
			want := string(tt.feature.Policy)
			if tt.feature.Policy == vmi.CPUFeatureUnset {
				want = "require"
			}
			require.Equal(t, []string{want}, policies[tt.feature.Name])
		})
	}
}
