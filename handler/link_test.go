package handler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

func TestTheLinksOfAVMIAreThoseOfItsDomain(t *testing.T) {
	t.Parallel()
	bound := []vmi.InterfaceStatus{{Name: "default", LinkState: "up"}, {Name: "lan", LinkState: "down"}, {Name: "device"}}
	require.Equal(t, bound, linked(bound, nil), "the launcher does not say")
	require.Equal(t, []vmi.InterfaceStatus{{Name: "default", LinkState: "down"}, {Name: "lan", LinkState: "down"}, {Name: "device"}},
		linked(bound, []protocol.Link{{Name: "default", State: "down"}, {Name: "device", State: "up"}, {Name: "other", State: "up"}}))
	require.Equal(t, "up", bound[0].LinkState, "what was bound is not changed")
}
