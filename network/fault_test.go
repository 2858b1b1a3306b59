package network_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

func TestPlanNamesEveryFault(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		spec    func(*vmi.VirtualMachineInstanceSpec)
		state   func(*network.State)
		faults  []string
		invalid bool
	}{
		{
			name: "an interface without a binding and a network without an interface",
			spec: func(s *vmi.VirtualMachineInstanceSpec) {
				s.Domain.Devices.Interfaces[0].InterfaceBinding = vmi.InterfaceBinding{}
				s.Networks = append(s.Networks, podNetwork("other"))
			},
			faults:  []string{"spec.domain.devices.interfaces[0]: interface default: its binding is not known", "spec.networks[1].name: network other: there is no interface of that name"},
			invalid: true,
		},
		{
			name: "two interfaces on the pod network",
			spec: func(s *vmi.VirtualMachineInstanceSpec) {
				s.Domain.Devices.Interfaces = append(s.Domain.Devices.Interfaces, vmi.Interface{Name: "other", InterfaceBinding: masquerade})
				s.Networks = append(s.Networks, podNetwork("other"))
			},
			faults:  []string{"spec.networks[1]: network other: the pod's link eth0 is that of network default, and has room for one interface"},
			invalid: true,
		},
		{
			name: "a secondary network, for which the pod has no link",
			spec: func(s *vmi.VirtualMachineInstanceSpec) {
				s.Domain.Devices.Interfaces = append(s.Domain.Devices.Interfaces, vmi.Interface{Name: "blue", InterfaceBinding: bridge})
				s.Networks = append(s.Networks, vmi.Network{Name: "blue", NetworkSource: vmi.NetworkSource{Multus: &vmi.MultusNetwork{NetworkName: "blue"}}})
			},
			faults: []string{"bind interface blue: the pod has no link pod16477688c0e for network blue"},
		},
		{
			name: "an interface without a network, twice",
			spec: func(s *vmi.VirtualMachineInstanceSpec) {
				i := vmi.Interface{Name: "lost", InterfaceBinding: masquerade}
				s.Domain.Devices.Interfaces = append(s.Domain.Devices.Interfaces, i, i)
			},
			faults:  []string{"interfaces[1].name: interface lost: there is no network of that name", "interfaces[2].name: interface lost: there are two of that name"},
			invalid: true,
		},
		{
			name: "two networks of a name",
			spec: func(s *vmi.VirtualMachineInstanceSpec) {
				s.Networks = []vmi.Network{{Name: "default"}, {Name: "default"}}
			},
			faults:  []string{"spec.networks[1].name: network default: there are two of that name"},
			invalid: true,
		},
		{
			name: "bad addresses, ports and protocols",
			spec: func(s *vmi.VirtualMachineInstanceSpec) {
				i := &s.Domain.Devices.Interfaces[0]
				i.Bridge = &vmi.InterfaceBridge{}
				i.MacAddress = "01:00:5e:00:00:01"
				i.Ports = []vmi.Port{{Port: 70000}, {Port: 1, Protocol: "SCTP"}}
				i.PortRanges = []vmi.PortRange{{Start: 2, End: 1}}
			},
			faults: []string{
				"interfaces[0]: interface default: it has 2 bindings",
				`interface default: spec.domain.devices.interfaces[0].macAddress: Invalid value: "01:00:5e:00:00:01": must not be a multicast address`,
				"interfaces[0].ports[0].port: Invalid value: 70000: must be from 1 to 65535",
				`interfaces[0].ports[1].protocol: Invalid value: "SCTP": must be TCP or UDP`,
				"interfaces[0].portRanges[0].start: Invalid value: 2: must not be more than end, 1",
			},
			invalid: true,
		},
		{
			name: "the gateway's MAC address",
			spec: func(s *vmi.VirtualMachineInstanceSpec) {
				s.Domain.Devices.Interfaces[0].MacAddress = "02:00:00:00:00:00"
			},
			faults:  []string{`interface default: spec.domain.devices.interfaces[0].macAddress: Invalid value: "02:00:00:00:00:00": is the gateway's with the masquerade binding`},
			invalid: true,
		},
		{
			name: "a bridged guest with the MAC address of its choice on the pod network",
			spec: func(s *vmi.VirtualMachineInstanceSpec) {
				i := &s.Domain.Devices.Interfaces[0]
				i.InterfaceBinding, i.MacAddress = bridge, "0a:58:0a:f4:00:07"
			},
			faults:  []string{"spec.domain.devices.interfaces[0].macAddress: interface default: MAC address 0a:58:0a:f4:00:07 is not 0a:58:0a:f4:00:05, which the pod has on this network"},
			invalid: true,
		},
		{
			name: "guest networks that are none",
			spec: func(s *vmi.VirtualMachineInstanceSpec) {
				s.Networks[0].Pod = &vmi.PodNetwork{VMNetworkCIDR: "10.0.2.0/31", VMIPv6NetworkCIDR: "10.0.3.0/24"}
			},
			faults:  []string{"spec.networks[0].pod.vmNetworkCIDR: network default: vmNetworkCIDR must have room for the guest and its gateway: at most /30", "vmIPv6NetworkCIDR must be an IPv6 network, as address/length"},
			invalid: true,
		},
		{
			name:    "a guest network that holds the pod",
			spec:    func(s *vmi.VirtualMachineInstanceSpec) { s.Networks[0].Pod.VMNetworkCIDR = "10.244.0.0/16" },
			faults:  []string{"vmNetworkCIDR 10.244.0.0/16 holds the address 10.244.0.5 of the pod's link eth0"},
			invalid: true,
		},
		{
			name:   "a pod without a link",
			state:  func(s *network.State) { s.Links = s.Links[:1] },
			faults: []string{"bind interface default: the pod has no link eth0 for network default"},
		},
		{
			name:   "a pod whose link is down",
			state:  func(s *network.State) { s.Links[1].Up = false },
			faults: []string{"bind interface default: the pod's link eth0 for network default is down"},
		},
		{
			name:   "a pod without an address",
			state:  func(s *network.State) { s.Links[1].Addresses = nil },
			faults: []string{"bind interface default: the pod's link eth0 for network default has no address"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v, s := instance(masquerade), fresh()
			if tt.spec != nil {
				tt.spec(&v.Spec)
			}
			if tt.state != nil {
				tt.state(&s)
			}
			cfg, err := network.Plan(network.Input{Instance: v, State: s})
			require.Error(t, err)
			for _, f := range tt.faults {
				require.ErrorContains(t, err, f)
			}
			require.Equal(t, tt.invalid, errors.Is(err, vmi.ErrInvalid))
			require.Equal(t, network.Config{}, cfg)
		})
	}
}
