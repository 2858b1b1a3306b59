package network_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// with is a fresh namespace with these links more.
func with(more ...network.Link) network.State {
	s := fresh()
	s.Links = append(s.Links, more...)
	return s
}

func TestABindingStaysWhenTheDefaultChanges(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		state network.State
		spec  vmi.InterfaceBinding
		nat   bool
	}{
		"nothing is there: as the VMI has it":             {fresh(), bridge, false},
		"nothing is there, masquerade":                    {fresh(), masquerade, true},
		"the gateway of masquerade":                       {with(network.Link{Name: "k6t-eth0", Kind: "bridge", Addresses: prefixes("10.0.2.1/24")}), bridge, true},
		"the gateway of masquerade near the servers":      {with(network.Link{Name: "k6t-eth0", Kind: "bridge", Addresses: prefixes("169.254.75.1/24")}), bridge, true},
		"the address server of bridge":                    {with(network.Link{Name: "k6t-eth0", Kind: "bridge", Addresses: prefixes("169.254.75.10/32")}), masquerade, false},
		"routes that bridge remembers":                    {with(network.Link{Name: "k6t-eth0", Kind: "bridge", Remembered: []network.Route{route("0.0.0.0/0", "10.244.0.1")}}), masquerade, false},
		"the stand-in of bridge":                          {with(network.Link{Name: "k6t-eth0", Kind: "bridge"}, network.Link{Name: "eth0-new", Kind: "bridge"}), masquerade, false},
		"a link without an address, which both have once": {with(network.Link{Name: "k6t-eth0", Kind: "bridge"}), masquerade, true},
		"the links of another interface":                  {with(network.Link{Name: network.NamesOf("lan1", "lan").Bridge, Kind: "bridge", Addresses: prefixes("10.0.3.1/24")}), bridge, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := network.Plan(network.Input{Instance: instance(tt.spec), State: tt.state})
			require.NoError(t, err)
			require.Equal(t, tt.nat, len(cfg.NAT) == 1)
		})
	}
}

func TestABindingStaysForEachInterfaceOnItsOwn(t *testing.T) {
	t.Parallel()
	names := network.NamesOf("lan1", network.PodLinkName(vmi.Network{Name: "lan1"}))
	for _, tt := range []struct {
		name    string
		address string
		spec    vmi.InterfaceBinding
		// nat are the links with address translation.
		nat []string
		// server is the address that the second interface's DHCP offer comes from.
		server string
	}{
		{"the second is bound by bridge", "169.254.75.17/32", masquerade, []string{"k6t-eth0"}, "169.254.75.17"},
		{"the second is bound by masquerade", "10.0.3.1/24", bridge, []string{names.Bridge}, "10.0.3.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := fresh("lan1")
			s.Links = append(s.Links, network.Link{Index: 9, Name: names.Bridge, Kind: "bridge", Addresses: prefixes(tt.address)})
			v := instance(tt.spec, tt.spec)
			cfg, err := network.Plan(network.Input{Instance: v, State: s, Links: networktest.Links(v)})
			require.NoError(t, err)
			var nat []string
			for _, n := range cfg.NAT {
				nat = append(nat, n.Link)
			}
			require.Equal(t, tt.nat, nat)
			require.Equal(t, tt.server, cfg.Attachments[1].DHCP.Server.String())
		})
	}
}

// pluginTap is a binding for networks whose plugin gives the pod a tap device:
// the guest is attached to that.
type pluginTap struct{}

func (pluginTap) Traits() network.Traits { return network.Traits{} }
func (pluginTap) Serves(spec vmi.Interface) bool {
	return spec.Binding != nil && spec.Binding.Name == "tap"
}

// Bound is false: the binding changes nothing in the pod.
func (pluginTap) Bound(network.Interface) bool { return false }

func (pluginTap) Plan(i network.Interface) (network.Config, error) {
	pod, err := i.Pod()
	if err != nil {
		return network.Config{}, err
	}
	mac := i.MAC(network.MAC(i.Instance.UID, i.Spec.Name))
	return network.Config{
		Attachments: []network.Attachment{{Name: i.Spec.Name, Tap: i.Names.Pod, MAC: mac, MTU: pod.MTU}},
		Interfaces:  []vmi.InterfaceStatus{i.Status(mac, nil)},
	}, nil
}

// overlay is a binding whose guests have the address of their pod.
type overlay struct{ network.Binding }

func (overlay) Serves(spec vmi.Interface) bool {
	return spec.Binding != nil && spec.Binding.Name == "overlay"
}
func (overlay) Traits() network.Traits { return network.Traits{TakesOver: true} }

func TestTheRouterIsLookedForForABindingOfAnEmbedder(t *testing.T) {
	t.Parallel()
	v := instance(vmi.InterfaceBinding{})
	v.Spec.Domain.Devices.Interfaces[0].Binding = &vmi.PluginBinding{Name: "overlay"}
	require.Empty(t, network.RoutedLink(v, nil))
	require.Equal(t, "eth0", network.RoutedLink(v, append(network.Bindings(), overlay{})))
}

// An embedder's own binding is one type, and one entry in the list.
func ExampleBinding() {
	v := instance(masquerade, vmi.InterfaceBinding{})
	v.Spec.Domain.Devices.Interfaces[1].Binding = &vmi.PluginBinding{Name: "tap"}
	state := network.State{Links: []network.Link{
		{Index: 2, Name: "eth0", Kind: "veth", MTU: 1450, Up: true, Addresses: prefixes("10.244.0.5/24")},
		{Index: 3, Name: "net1", Kind: "tun", MTU: 9000, Up: true},
	}}
	cfg, err := network.Plan(network.Input{
		Instance: v, State: state,
		Links:    map[string]string{"lan1": "net1"},
		Bindings: append(network.Bindings(), pluginTap{}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range cfg.Attachments {
		fmt.Println(a.Name, a.Tap, a.MTU)
	}
	// Output:
	// default tap0 1450
	// lan1 net1 9000
}

// fixed is a binding with a plan that does not depend on the interface.
type fixed struct{ config network.Config }

func (fixed) Traits() network.Traits                           { return network.Traits{} }
func (fixed) Serves(spec vmi.Interface) bool                   { return spec.Binding != nil }
func (fixed) Bound(network.Interface) bool                     { return false }
func (f fixed) Plan(network.Interface) (network.Config, error) { return f.config, nil }

func TestInterfacesThatDoNotAgreeAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		config network.Config
		want   string
	}{
		{
			"a link of another interface",
			network.Config{Links: []network.LinkConfig{{Name: "tap0", Kind: network.Tap}}},
			"bind interface lan1: the link tap0 is one of interface default",
		},
		{
			"another value of a setting",
			network.Config{Sysctls: []network.Sysctl{{Key: "net/ipv6/conf/all/forwarding", Value: "0"}}},
			"bind interface lan1: set net/ipv6/conf/all/forwarding to 0: another interface needs 1",
		},
		{
			"a guest's network within that of another interface",
			network.Config{Links: []network.LinkConfig{{Name: "br", Kind: network.Bridge, Addresses: prefixes("10.0.2.128/25")}}},
			"interface lan1: its guest's network 10.0.2.128/25 overlaps 10.0.2.0/24 of interface default",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := instance(masquerade, vmi.InterfaceBinding{})
			v.Spec.Domain.Devices.Interfaces[1].Binding = &vmi.PluginBinding{}
			cfg, err := network.Plan(network.Input{
				Instance: v, State: fresh("lan1"), Links: networktest.Links(v), Bindings: append(network.Bindings(), fixed{tt.config}),
			})
			require.ErrorContains(t, err, tt.want)
			require.Equal(t, network.Config{}, cfg)
		})
	}
}

func TestABindingSaysWhatItsInterfacesAre(t *testing.T) {
	t.Parallel()
	got := map[string]network.Traits{}
	all := reflect.TypeFor[vmi.InterfaceBinding]()
	for n := range all.NumField() {
		var spec vmi.Interface
		reflect.ValueOf(&spec.InterfaceBinding).Elem().Field(n).Set(reflect.New(all.Field(n).Type.Elem()))
		got[spec.Bindings()[0]] = network.TraitsOf(spec, nil)
	}
	require.Equal(t, map[string]network.Traits{
		"bridge": {TakesOver: true}, "masquerade": {Translated: true, Movable: true}, "sriov": {}, "passtBinding": {}, "slirp": {}, "macvtap": {}, "passt": {},
	}, got)
	require.Equal(t, network.Traits{Movable: true}, network.TraitsOf(vmi.Interface{Binding: &vmi.PluginBinding{Name: "own"}}, []network.Binding{movable{}}), "those of another program")
}

// movable is a binding of another program.
type movable struct{ fixed }

func (movable) Traits() network.Traits { return network.Traits{Movable: true} }
