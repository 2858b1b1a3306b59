package link

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/golden"
	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

var owner = network.Owner{UID: 107, GID: 107}

// bindings are the bindings of the interfaces of a VMI, by the name of the golden
// files.
var bindings = map[string][]vmi.InterfaceBinding{
	"masquerade":            {networktest.Masquerade},
	"bridge":                {networktest.Bridge},
	"masquerade-bridge":     {networktest.Masquerade, networktest.Bridge},
	"bridge-masquerade":     {networktest.Bridge, networktest.Masquerade},
	"bridge-bridge":         {networktest.Bridge, networktest.Bridge},
	"masquerade-masquerade": {networktest.Masquerade, networktest.Masquerade},
}

// podOf makes a pod with the networks of a VMI.
func podOf(t *testing.T, v *vmi.VirtualMachineInstance, make func(testing.TB) (pod, node *os.File)) *os.File {
	t.Helper()
	pod, _ := make(t)
	networktest.AttachAll(t, pod, v)
	return pod
}

func plan(t *testing.T, pod *os.File, v *vmi.VirtualMachineInstance) network.Config {
	t.Helper()
	s, err := Observe(t.Context(), pod)
	require.NoError(t, err)
	cfg, err := network.Plan(network.Input{Instance: v, State: s, Owner: owner, Links: networktest.Links(v)})
	require.NoError(t, err)
	return cfg
}

// text is the namespace as people read it, with the settings of the config.
func text(t *testing.T, pod *os.File, cfg network.Config) []byte {
	t.Helper()
	s, err := Observe(t.Context(), pod)
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

func TestATapDeviceIsOpenedForEachQueue(t *testing.T) {
	v := networktest.Instance(networktest.Masquerade)
	v.Spec.Domain.CPU = &vmi.CPU{Cores: 3}
	v.Spec.Domain.Devices.NetworkInterfaceMultiQueue = new(true)
	pod, _ := networktest.Pod(t)
	cfg := plan(t, pod, v)
	require.Equal(t, 3, cfg.Attachments[0].Queues)
	require.NoError(t, Apply(t.Context(), pod, cfg))
	first := string(text(t, pod, cfg))
	require.Contains(t, first, "owner 107:107 multi-queue")
	require.Equal(t, cfg, plan(t, pod, v), "the plan for what is bound is the same plan")
	require.NoError(t, Apply(t.Context(), pod, cfg))
	require.Equal(t, first, string(text(t, pod, cfg)))
	for range 3 {
		networktest.OpenTap(t, pod, "tap0", unix.IFF_MULTI_QUEUE)
	}
}

func TestApply(t *testing.T) {
	for name, b := range bindings {
		for family, make := range map[string]func(testing.TB) (*os.File, *os.File){"ipv4": networktest.Pod, "dual": networktest.DualPod} {
			t.Run(name+" "+family, func(t *testing.T) {
				v := networktest.Instance(b...)
				pod := podOf(t, v, make)
				cfg := plan(t, pod, v)
				began := time.Now()
				require.NoError(t, Apply(t.Context(), pod, cfg))
				t.Logf("applied in %s", time.Since(began))
				first := text(t, pod, cfg)
				golden.Equal(t, "testdata/"+name+"-"+family+".txt", first)

				require.Equal(t, cfg, plan(t, pod, v), "the plan for what is bound is the same plan")
				began = time.Now()
				require.NoError(t, Apply(t.Context(), pod, cfg))
				t.Logf("applied again in %s", time.Since(began))
				require.Equal(t, string(first), string(text(t, pod, cfg)), "applying twice changes nothing more")
			})
		}
	}
}
