package libvirt

import (
	"strings"
	"testing"

	golibvirt "github.com/digitalocean/go-libvirt"
	"github.com/stretchr/testify/require"
	"libvirt.org/go/libvirtxml"
)

func TestAnAgentIsConnectedWhenItsChannelIsOpen(t *testing.T) {
	for _, tt := range []struct {
		name, channels string
		want           bool
	}{
		{"no channel", ``, false},
		{"a channel that was never opened", `<channel type="unix"><target type="virtio" name="org.qemu.guest_agent.0"/></channel>`, false},
		{"a closed channel", `<channel type="unix"><target type="virtio" name="org.qemu.guest_agent.0" state="disconnected"/></channel>`, false},
		{"an open channel", `<channel type="unix"><target type="virtio" name="org.qemu.guest_agent.0" state="connected"/></channel>`, true},
		{"another's open channel", `<channel type="unix"><target type="virtio" name="org.other.0" state="connected"/></channel>
			<channel type="unix"><target type="virtio" name="org.qemu.guest_agent.0" state="disconnected"/></channel>`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var d libvirtxml.Domain
			require.NoError(t, d.Unmarshal(`<domain type="qemu"><devices>`+tt.channels+`</devices></domain>`))
			require.Equal(t, tt.want, agentConnected(&d))
		})
	}
	require.False(t, agentConnected(&libvirtxml.Domain{}))
}

func TestTheStartOfADomainIsNoEventOfItsAgent(t *testing.T) {
	require.Equal(t, AgentChanged, agentEvent(golibvirt.ConnectDomainEventAgentLifecycleReasonChannel))
	require.Empty(t, agentEvent(golibvirt.ConnectDomainEventAgentLifecycleReasonDomainStarted))
	require.Empty(t, agentEvent(golibvirt.ConnectDomainEventAgentLifecycleReasonUnknown))
}

func TestAnAgentsVersionIsAShortWord(t *testing.T) {
	said := func(version string) string {
		return `{"return":{"version":"` + version + `","supported_commands":[{"name":"guest-ping"}]}}`
	}
	for _, v := range []string{"7.2.22", "107.0.1", "10.0.0-rc1", "9.1.0+git~1_a"} {
		got, err := agentVersion(agentAnswer{said(v)})
		require.NoError(t, err)
		require.Equal(t, v, got)
	}
	for name, tt := range map[string]struct{ answer, err string }{
		"nothing":            {``, "not what guest-info answers"},
		"no JSON":            {`7.2.22`, "not what guest-info answers"},
		"two answers":        {said("7.2.22") + said("7.2.22"), "not what guest-info answers"},
		"a number":           {`{"return":{"version":7}}`, "not what guest-info answers"},
		"no version":         {`{"return":{}}`, "its version is none"},
		"no answer":          {`{"error":{"class":"CommandNotFound"}}`, "its version is none"},
		"a sentence":         {said("it is 7.2"), "its version is none"},
		"a line":             {said(`7.2\n8.0`), "its version is none"},
		"a terminal's order": {said(`7.2\u001b[2J`), "its version is none"},
		"a long version":     {said(strings.Repeat("7", maxVersion+1)), "its version is none"},
		"a long answer":      {said(strings.Repeat("7", maxAnswer)), "at most 65536 are read"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := agentVersion(agentAnswer{tt.answer})
			require.ErrorContains(t, err, tt.err)
			require.Empty(t, got)
		})
	}
}

func FuzzAgentVersion(f *testing.F) {
	f.Add(`{"return":{"version":"7.2.22","supported_commands":[{"enabled":true,"name":"guest-ping","success-response":true}]}}`)
	f.Add(`{"return":{"version":"7.2 \u0000"}}`)
	f.Add(strings.Repeat("[", 1000))
	f.Fuzz(func(t *testing.T, answer string) {
		v, err := agentVersion(agentAnswer{answer})
		if err != nil {
			require.Empty(t, v)
			require.Less(t, len(err.Error()), 100)
			return
		}
		require.NotEmpty(t, v)
		require.LessOrEqual(t, len(v), maxVersion)
		require.NotContains(t, v, " ")
		require.Equal(t, strings.ToValidUTF8(v, ""), v)
	})
}
