package libvirt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
)

const twoInterfaces = `{"return":[
{"name":"lo","ip-addresses":[{"ip-address-type":"ipv4","ip-address":"127.0.0.1","prefix":8}],"hardware-address":"00:00:00:00:00:00"},
{"name":"eth0","ip-addresses":[{"ip-address-type":"ipv4","ip-address":"10.0.2.2","prefix":24},{"ip-address-type":"ipv6","ip-address":"fe80::1%eth0","prefix":64},{"ip-address":"nonsense"}],"statistics":{"rx-bytes":1},"hardware-address":"02:29:ef:a9:cb:99"},
{"name":"down","hardware-address":"02:29:ef:a9:cb:98"},
{"name":"tun0","ip-addresses":[{"ip-address":"10.9.0.1"}]}]}`

func TestTheInterfacesThatAnAgentReports(t *testing.T) {
	got, err := agentInterfaces(twoInterfaces)
	require.NoError(t, err)
	require.Equal(t, []protocol.Interface{
		{Name: "eth0", MAC: "02:29:ef:a9:cb:99", Addresses: []string{"10.0.2.2", "fe80::1"}},
		{Name: "down", MAC: "02:29:ef:a9:cb:98"},
	}, got)

	many := strings.Repeat(`{"name":"a","hardware-address":"02:00:00:00:00:01","ip-addresses":[`+strings.Repeat(`{"ip-address":"10.0.0.1"},`, 20)+`{}]},`, 40)
	got, err = agentInterfaces(`{"return":[` + many + `{}]}`)
	require.NoError(t, err)
	require.Len(t, got, mostInterfaces)
	require.Len(t, got[0].Addresses, mostAddresses)

	for _, answer := range []string{``, `{"return":7}`, `{"return":[7]}`, fmt.Sprintf(`{"return":[{"name":%q}]}`, strings.Repeat("a", maxAnswer))} {
		got, err := agentInterfaces(answer)
		require.Error(t, err)
		require.Empty(t, got)
		require.Less(t, len(err.Error()), 100)
	}
}

func FuzzAgentInterfaces(f *testing.F) {
	f.Add(twoInterfaces)
	f.Fuzz(func(t *testing.T, answer string) {
		got, _ := agentInterfaces(answer)
		require.LessOrEqual(t, len(got), mostInterfaces)
	})
}
