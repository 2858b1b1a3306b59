package handler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

func TestTheInterfacesOfAVMIWithWhatTheGuestSays(t *testing.T) {
	t.Parallel()
	v := &vmi.VirtualMachineInstance{}
	v.Spec.Domain.Devices.Interfaces = []vmi.Interface{
		{Name: "default", InterfaceBinding: vmi.InterfaceBinding{Masquerade: &vmi.InterfaceMasquerade{}}},
		{Name: "lan", InterfaceBinding: vmi.InterfaceBinding{Bridge: &vmi.InterfaceBridge{}}},
	}
	bound := []vmi.InterfaceStatus{
		{Name: "default", MAC: "02:00:00:00:00:01", IP: "10.244.0.5", IPs: []string{"10.244.0.5"}, InfoSource: "domain"},
		{Name: "lan", MAC: "02:00:00:00:00:02", InfoSource: "domain"},
	}
	require.Equal(t, bound, interfaces(v, nil, bound, nil))
	got := interfaces(v, nil, bound, []protocol.Interface{
		{Name: "Ethernet 2", MAC: "02:00:00:00:00:02", Addresses: []string{"192.0.2.7", "fe80::2"}},
		{Name: "eth0", MAC: "02:00:00:00:00:01", Addresses: []string{"10.0.2.2"}},
		{Name: "vlan5", MAC: "02:00:00:00:00:01", Addresses: []string{"192.0.2.99"}},
		{Name: "docker0", MAC: "02:42:00:00:00:01", Addresses: []string{"172.17.0.1"}},
	})
	require.Equal(t, []vmi.InterfaceStatus{
		{Name: "default", MAC: "02:00:00:00:00:01", IP: "10.244.0.5", IPs: []string{"10.244.0.5"}, InfoSource: "domain, guest-agent", InterfaceName: "eth0"},
		{Name: "lan", MAC: "02:00:00:00:00:02", IP: "192.0.2.7", IPs: []string{"192.0.2.7", "fe80::2"}, InfoSource: "domain, guest-agent", InterfaceName: "Ethernet 2"},
		{MAC: "02:00:00:00:00:01", IP: "192.0.2.99", IPs: []string{"192.0.2.99"}, InfoSource: "guest-agent", InterfaceName: "vlan5"},
		{MAC: "02:42:00:00:00:01", IP: "172.17.0.1", IPs: []string{"172.17.0.1"}, InfoSource: "guest-agent", InterfaceName: "docker0"},
	}, got)
	require.Equal(t, "domain", bound[0].InfoSource, "what was bound is not changed")

	var many []protocol.Interface
	for range 30 {
		many = append(many, protocol.Interface{MAC: "02:42:00:00:00:01"})
	}
	require.Len(t, interfaces(v, nil, bound, many), 2+mostGuestOnly)
}

func TestAnInterfaceThatMultusAttachedKeepsThatSource(t *testing.T) {
	t.Parallel()
	v := &vmi.VirtualMachineInstance{}
	v.Status.Interfaces = []vmi.InterfaceStatus{{Name: "lan", PodInterfaceName: "pod16477688c0e", InfoSource: "multus-status"}}
	bound := []vmi.InterfaceStatus{
		{Name: "default", MAC: "02:00:00:00:00:01", InfoSource: "domain"},
		{Name: "lan", MAC: "02:00:00:00:00:02", InfoSource: "domain"},
	}
	said := []protocol.Interface{{Name: "eth1", MAC: "02:00:00:00:00:02"}, {Name: "lan", MAC: "02:00:00:00:00:03"}}
	for _, tt := range []struct {
		name string
		said []protocol.Interface
		want []string
	}{
		{"the launcher alone reports", nil, []string{"domain", "domain, multus-status"}},
		{"the agent reports", said, []string{"domain", "domain, guest-agent, multus-status", "guest-agent"}},
		{"the agent reports no more", nil, []string{"domain", "domain, multus-status"}},
	} {
		v.Status.Interfaces = interfaces(v, nil, bound, tt.said)
		var got []string
		for _, i := range v.Status.Interfaces {
			got = append(got, i.InfoSource)
		}
		require.Equal(t, tt.want, got, tt.name)
	}
}

// overlay is a binding of an embedder that translates.
type overlay struct{ network.Binding }

func (overlay) Serves(spec vmi.Interface) bool {
	return spec.Binding != nil && spec.Binding.Name == "overlay"
}
func (overlay) Traits() network.Traits { return network.Traits{Translated: true} }

func TestTheAddressesBehindABindingOfAnEmbedderAreItsPods(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseRunning)
	v.Spec.Domain.Devices.Interfaces = []vmi.Interface{{Name: "default", Binding: &vmi.PluginBinding{Name: "overlay"}}}
	st := state(protocol.Running)
	st.Interfaces = []protocol.Interface{{Name: "eth0", MAC: "02:00:00:00:00:01", Addresses: []string{"192.0.2.7"}}}
	o := observed(v, session(v, st))
	bound := *o.Session.Network // which other tests read
	o.Session.Network = &bound
	bound.Interfaces = []vmi.InterfaceStatus{{Name: "default", MAC: "02:00:00:00:00:01", IP: "10.244.0.5", IPs: []string{"10.244.0.5"}, InfoSource: "domain"}}
	for _, tt := range []struct {
		among []network.Binding
		want  string
	}{{nil, "192.0.2.7"}, {append(network.Bindings(), overlay{}), "10.244.0.5"}} {
		o.Bindings = tt.among
		require.Equal(t, tt.want, Decide(o).Status.Interfaces[0].IP)
	}
}
