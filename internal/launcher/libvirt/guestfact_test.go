package libvirt

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	golibvirt "github.com/digitalocean/go-libvirt"
	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
)

const twoInterfaces = `{"return":[
{"name":"lo","ip-addresses":[{"ip-address-type":"ipv4","ip-address":"127.0.0.1","prefix":8}],"hardware-address":"00:00:00:00:00:00"},
{"name":"eth0","ip-addresses":[{"ip-address-type":"ipv4","ip-address":"10.0.2.2","prefix":24},{"ip-address-type":"ipv6","ip-address":"fe80::1%eth0","prefix":64},{"ip-address":"nonsense"}],"statistics":{"rx-bytes":1},"hardware-address":"02:29:ef:a9:cb:99"},
{"name":"down","hardware-address":"02:29:ef:a9:cb:98"},
{"name":"tun0","ip-addresses":[{"ip-address":"10.9.0.1"}]}]}`

func TestTheInterfacesThatAnAgentReports(t *testing.T) {
	got, err := agentInterfaces(agentAnswer{twoInterfaces})
	require.NoError(t, err)
	require.Equal(t, []protocol.Interface{
		{Name: "eth0", MAC: "02:29:ef:a9:cb:99", Addresses: []string{"10.0.2.2", "fe80::1"}},
		{Name: "down", MAC: "02:29:ef:a9:cb:98"},
	}, got)

	many := strings.Repeat(`{"name":"a","hardware-address":"02:00:00:00:00:01","ip-addresses":[`+strings.Repeat(`{"ip-address":"10.0.0.1"},`, 20)+`{}]},`, 40)
	got, err = agentInterfaces(agentAnswer{`{"return":[` + many + `{}]}`})
	require.NoError(t, err)
	require.Len(t, got, mostInterfaces)
	require.Len(t, got[0].Addresses, mostAddresses)

	for _, answer := range []string{``, `{"return":7}`, `{"return":[7]}`, fmt.Sprintf(`{"return":[{"name":%q}]}`, strings.Repeat("a", maxAnswer))} {
		got, err := agentInterfaces(agentAnswer{answer})
		require.Error(t, err)
		require.Empty(t, got)
		require.Less(t, len(err.Error()), 128)
	}
}

func TestWhatAnAgentDoesNotSayOfAGuestIsNotChanged(t *testing.T) {
	facts := []guestFact{
		{command: "a", read: func(answer agentAnswer) (func(*protocol.State), error) {
			return func(s *protocol.State) { s.Machine = answer.text }, nil
		}},
		{command: "b", read: func(agentAnswer) (func(*protocol.State), error) { return nil, errors.New("cannot be read") }},
		{command: "c", read: func(answer agentAnswer) (func(*protocol.State), error) {
			return func(s *protocol.State) { s.Reboots = int64(len(answer.text)) }, nil
		}},
	}
	refusal := agentFailure(askAgent, "vm", nil, failure(askAgent, "vm", golibvirt.Error{Code: uint32(golibvirt.ErrAgentCommandFailed), Message: "not known"}))
	silence := agentFailure(askAgent, "vm", nil, failure(askAgent, "vm", golibvirt.Error{Code: uint32(golibvirt.ErrAgentUnresponsive), Message: "no answer"}))
	for _, tt := range []struct {
		name  string
		first error
		want  protocol.State
		err   string
		asked int
	}{
		{"it answers", nil, protocol.State{Machine: "a", Reboots: 1, Panics: 7}, "b: cannot be read", 3},
		{"it does not know a command", refusal, protocol.State{Reboots: 1, Panics: 7}, "a: ask the agent in domain vm: the agent refused\nb: cannot be read", 3},
		{"it does not answer", silence, protocol.State{Panics: 7}, "ask the agent in domain vm: no answer of its agent", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := 0
			known, err := observed(facts, func(command string) (agentAnswer, error) {
				asked++
				if command == "a" && tt.first != nil {
					return agentAnswer{}, tt.first
				}
				return agentAnswer{command}, nil
			})
			require.EqualError(t, err, tt.err)
			require.Equal(t, tt.asked, asked)
			state := protocol.State{Panics: 7}
			known(&state)
			require.Equal(t, tt.want, state)
		})
	}
}

func TestWithoutAnAgentNothingOfTheGuestIsKnown(t *testing.T) {
	state := protocol.State{Machine: "q35"}
	known, err := observed(guestFacts, func(command string) (agentAnswer, error) {
		return agentAnswer{map[string]string{"guest-network-get-interfaces": twoInterfaces}[command]}, nil
	})
	require.NoError(t, err, "each fact has an answer here")
	known(&state)
	require.NotEqual(t, protocol.State{Machine: "q35"}, state)
	DropGuest(&state)
	require.Equal(t, protocol.State{Machine: "q35"}, state)
}

func FuzzAgentInterfaces(f *testing.F) {
	f.Add(twoInterfaces)
	f.Fuzz(func(t *testing.T, answer string) {
		got, _ := agentInterfaces(agentAnswer{answer})
		require.LessOrEqual(t, len(got), mostInterfaces)
	})
}
