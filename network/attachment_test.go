package network_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/network"
)

// What the release before this one sends, and reads.
const older = `[{"name":"default","tap":"tap0","mac":"02:29:ef:a9:cb:99","mtu":1450,"dhcp":{"link":"k6t-eth0","mac":"02:29:ef:a9:cb:99",` +
	`"address":"10.244.0.5/32","server":"169.254.75.10","router":"169.254.1.1","routes":[{"destination":"169.254.1.1/32"},` +
	`{"destination":"0.0.0.0/0","gateway":"169.254.1.1"}],"mtu":1450,"hostname":"hello","subdomain":"farm"}},{"name":"other","tap":"tap1","mac":"02:29:ef:a9:cb:9a"}]`

func TestAttachmentsHaveTheJSONOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	var a []network.Attachment
	require.NoError(t, json.Unmarshal([]byte(older), &a))
	require.Len(t, a[0].DHCP.Routes, 2)
	require.Nil(t, a[1].DHCP)
	again, err := json.Marshal(a)
	require.NoError(t, err)
	require.Equal(t, older, string(again))
}
