package cni_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/network/cni"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// change changes the network and the interface that were added last.
func change(do func(*vmi.Network, *vmi.Interface)) vmitest.Option {
	return func(v *vmi.VirtualMachineInstance) {
		interfaces := v.Spec.Domain.Devices.Interfaces
		do(&v.Spec.Networks[len(v.Spec.Networks)-1], &interfaces[len(interfaces)-1])
	}
}

func TestSelection(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		options []vmitest.Option
		want    map[string]string
		links   map[string]string
	}{
		"the pod network needs no annotation": {
			[]vmitest.Option{vmitest.WithMasquerade("default")}, map[string]string{}, map[string]string{"default": "eth0"},
		},
		"a network is looked for in the namespace of the VMI": {
			[]vmitest.Option{vmitest.WithMasquerade("default"), vmitest.WithMultus("blue", "lan")},
			map[string]string{cni.NetworksAnnotation: `[{"name":"lan","namespace":"default","interface":"pod16477688c0e"}]`},
			map[string]string{"default": "eth0", "blue": "pod16477688c0e"},
		},
		"several networks, with a MAC address and of another namespace": {
			[]vmitest.Option{
				vmitest.WithMultus("blue", "infra/lan"),
				change(func(_ *vmi.Network, i *vmi.Interface) { i.MacAddress = "02:00:00:00:00:07" }),
				vmitest.WithMultus("red", "san"),
			},
			map[string]string{cni.NetworksAnnotation: `[{"name":"lan","namespace":"infra","mac":"02:00:00:00:00:07","interface":"pod16477688c0e"},` +
				`{"name":"san","namespace":"default","interface":"podb1f51a511f1"}]`},
			map[string]string{"blue": "pod16477688c0e", "red": "podb1f51a511f1"},
		},
		"a default network takes the place of the cluster's": {
			[]vmitest.Option{vmitest.WithMultus("blue", "infra/lan"), change(func(n *vmi.Network, _ *vmi.Interface) { n.Multus.Default = true })},
			map[string]string{cni.DefaultNetworkAnnotation: "infra/lan"},
			map[string]string{"blue": "eth0"},
		},
		"an absent interface has no network": {
			[]vmitest.Option{vmitest.WithMultus("blue", "lan"), change(func(_ *vmi.Network, i *vmi.Interface) { i.State = vmi.InterfaceAbsent })},
			map[string]string{}, map[string]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := vmitest.New(tt.options...)
			require.Equal(t, tt.want, cni.Selection(v))
			require.Equal(t, tt.links, cni.Links(v))
		})
	}
}

// written is a status as Multus 4.2 writes it.
const written = `[{"name": "podvisor", "interface": "eth0", "ips": ["10.244.1.7", "fd00:244:0:1::7"],
  "mac": "0e:1f:00:00:00:01", "default": true, "dns": {}, "gateway": ["10.244.1.1"]},
 {"name": "default/lan", "interface": "pod16477688c0e", "mac": "02:00:00:00:00:07", "mtu": 1500, "dns": {},
  "device-info": {"type": "pci", "version": "1.1.0", "pci": {"pci-address": "0000:18:02.5"}}}]`

func TestParseStatus(t *testing.T) {
	t.Parallel()
	got, err := cni.ParseStatus(written)
	require.NoError(t, err)
	require.Equal(t, []cni.Attached{
		{
			Network: "podvisor", Link: "eth0", MAC: "0e:1f:00:00:00:01", Default: true,
			Addresses: []netip.Addr{netip.MustParseAddr("10.244.1.7"), netip.MustParseAddr("fd00:244:0:1::7")},
		},
		{Network: "default/lan", Link: "pod16477688c0e", MAC: "02:00:00:00:00:07", PCI: "0000:18:02.5"},
	}, got)
}

func TestInterfaces(t *testing.T) {
	t.Parallel()
	v := vmitest.New(vmitest.WithMasquerade("default"), vmitest.WithMultus("blue", "lan"), vmitest.WithMultus("red", "san"))
	for name, tt := range map[string]struct {
		annotation string
		want       []vmi.InterfaceStatus
	}{
		"what Multus attached": {written, []vmi.InterfaceStatus{{Name: "blue", PodInterfaceName: "pod16477688c0e", InfoSource: "multus-status"}}},
		"no annotation":        {"", nil},
		"links of others":      {`[{"name": "default/lan", "interface": "net1"}, {"name": "default/san", "interface": "eth0", "default": true}]`, nil},
		"the first network":    {`[{"name": "default/lan", "interface": "pod16477688c0e", "default": true}]`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, cni.Interfaces(v, tt.annotation))
		})
	}
}

func TestAttackAForgedStatusChangesNothingButWhichInterfacesAreShown(t *testing.T) {
	t.Parallel()
	v := vmitest.New(vmitest.WithMasquerade("default"), vmitest.WithMultus("blue", "lan"))
	forged := strings.Repeat(`{"name": "kube-system/other", "interface": "pod16477688c0e", "mac": "02:00:00:00:00:66", "ips": ["10.96.0.1"], "device-info": {"pci": {"pci-address": "0000:00:02.0"}}},`, 3)
	for name, annotation := range map[string]string{
		"an address, a MAC and a device of others": "[" + strings.TrimSuffix(forged, ",") + "]",
		"links that nothing asked for":             "[" + forged + `{"name": "a", "interface": "lo"}, {"name": "b", "interface": "eth0"}]`,
	} {
		require.Equal(t, []vmi.InterfaceStatus{{Name: "blue", PodInterfaceName: "pod16477688c0e", InfoSource: "multus-status"}}, cni.Interfaces(v, annotation), name)
	}
	require.Empty(t, cni.Interfaces(v, "["+forged+`{"name": "../../etc"}]`), "nothing is read of an annotation with a malformed part")
}

func TestAttackAMalformedStatusIsRefused(t *testing.T) {
	t.Parallel()
	for name, annotation := range map[string]string{
		"nothing":                  "",
		"no list":                  `{"name": "a"}`,
		"no name":                  `[{"interface": "eth0"}]`,
		"a name that is a path":    `[{"name": "../../etc"}]`,
		"a link that is a path":    `[{"name": "a", "interface": "../lo"}]`,
		"a link that is too long":  `[{"name": "a", "interface": "sixteen-letters-"}]`,
		"a MAC of another length":  `[{"name": "a", "mac": "02:00"}]`,
		"a network for an address": `[{"name": "a", "ips": ["10.0.0.1/24"]}]`,
		"an address with a zone":   `[{"name": "a", "ips": ["fe80::1%eth0"]}]`,
		"a device that is a path":  `[{"name": "a", "device-info": {"pci": {"pci-address": "../../x"}}}]`,
		"something after the list": `[] []`,
		"too much":                 `[{"name": "` + strings.Repeat("a", 1<<17) + `"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := cni.ParseStatus(annotation)
			require.ErrorIs(t, err, cni.ErrStatus)
			require.Less(t, len(err.Error()), 300)
		})
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add(written)
	f.Add(`[{"name":"a","ips":["::1"]}]`)
	f.Fuzz(func(t *testing.T, annotation string) {
		all, err := cni.ParseStatus(annotation)
		if err != nil {
			require.ErrorIs(t, err, cni.ErrStatus)
			require.Nil(t, all)
		}
		for _, a := range all {
			require.LessOrEqual(t, len(a.Link), 15)
			require.NotContains(t, a.Link, "/")
			require.NotEmpty(t, a.Network)
		}
	})
}
