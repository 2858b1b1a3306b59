package supervisor

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

func TestAPortNeedsAWayOfTheHandler(t *testing.T) {
	s := &Supervisor{facts: newFacts()}
	for name, d := range map[string]*protocol.Desired{
		"nothing desired":                nil,
		"no interface":                   {},
		"an interface without a way":     {Interfaces: []network.Attachment{{Name: "default", Tap: "tap0"}}},
		"an address in the VMI's status": {Instance: &vmi.VirtualMachineInstance{Status: vmi.VirtualMachineInstanceStatus{Interfaces: []vmi.InterfaceStatus{{IP: "127.0.0.1"}}}}},
	} {
		s.facts.desired = d
		_, err := s.openPort(t.Context(), "tcp", 22)
		var refused *vmi.Refusal
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, protocol.ReasonMalformed, refused.Reason, name)
	}
	way := network.Way{Link: "k6t-eth0", From: netip.MustParseAddr("10.0.2.1"), To: netip.MustParseAddr("10.0.2.2")}
	s.facts.desired = &protocol.Desired{Interfaces: []network.Attachment{{Name: "lan"}, {Name: "default", Way: &way}}}
	require.Equal(t, &way, s.facts.way())
}
