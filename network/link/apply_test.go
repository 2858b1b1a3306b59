package link

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/golden"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/network/networktest"
	"github.com/podvisor/podvisor/vmi"
)

var owner = network.Owner{UID: 107, GID: 107}

// machine is a machine with one interface on the pod network.
func machine(b vmi.InterfaceBinding) *vmi.VirtualMachineInstance {
	v := &vmi.VirtualMachineInstance{}
	v.Name, v.UID = "hello", types.UID("9f2f3c1e-4f5a-4f7b-8a39-3c6ee7a8e001")
	v.Spec.Domain.Devices.Interfaces = []vmi.Interface{{Name: "default", InterfaceBinding: b}}
	v.Spec.Networks = []vmi.Network{{Name: "default", NetworkSource: vmi.NetworkSource{Pod: &vmi.PodNetwork{}}}}
	return v
}

var bindings = map[string]vmi.InterfaceBinding{
	"masquerade": {Masquerade: &vmi.InterfaceMasquerade{}},
	"bridge":     {Bridge: &vmi.InterfaceBridge{}},
}

func plan(t *testing.T, pod *os.File, v *vmi.VirtualMachineInstance) network.Config {
	t.Helper()
	s, err := Observe(pod)
	require.NoError(t, err)
	cfg, err := network.Plan(network.Input{Instance: v, State: s, Owner: owner})
	require.NoError(t, err)
	return cfg
}

// text is the namespace as people read it, with the settings that were wanted.
func text(t *testing.T, pod *os.File, cfg network.Config) []byte {
	t.Helper()
	s, err := Observe(pod)
	require.NoError(t, err)
	var b strings.Builder
	b.WriteString(s.String())
	wanted := cfg.Sysctls
	for _, l := range cfg.Links {
		wanted = append(wanted, l.Sysctls...)
	}
	networktest.In(t, pod, func() {
		for _, w := range wanted {
			got, err := os.ReadFile("/proc/sys/" + w.Key)
			if err != nil {
				got = []byte(err.Error())
			}
			b.WriteString(w.Key + " = " + strings.TrimSpace(string(got)) + "\n")
		}
	})
	return []byte(b.String())
}

func TestApply(t *testing.T) {
	for name, b := range bindings {
		for family, make := range map[string]func(testing.TB) (*os.File, *os.File){"ipv4": networktest.Pod, "dual": networktest.DualPod} {
			t.Run(name+" "+family, func(t *testing.T) {
				pod, _ := make(t)
				cfg := plan(t, pod, machine(b))
				began := time.Now()
				require.NoError(t, Apply(pod, cfg))
				t.Logf("applied in %s", time.Since(began))
				first := text(t, pod, cfg)
				golden.Equal(t, "testdata/"+name+"-"+family+".txt", first)

				require.Equal(t, cfg, plan(t, pod, machine(b)), "a plan for what was plumbed is the same plan")
				began = time.Now()
				require.NoError(t, Apply(pod, cfg))
				t.Logf("applied again in %s", time.Since(began))
				require.Equal(t, string(first), string(text(t, pod, cfg)), "applying twice changes nothing more")
			})
		}
	}
}
