package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

func TestWhichAgentsAreSupported(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		patterns []string
		version  string
		want     bool
	}{
		{nil, "2.0.0", true},
		{nil, "5.2.0", true},
		{nil, "7.2.22", true},
		{nil, "10.1.0", true},
		{nil, "107.0.1", true},
		{nil, "1.7.2", false},
		{nil, "0.15", false},
		{nil, "unknown", false},
		{nil, "-7.2", false},
		{[]string{"1.*"}, "7.2.22", false},
		{[]string{"1.*"}, "10.1.0", false},
		{[]string{"1.*"}, "1.1", true},
		{[]string{"2.*"}, "7.2.22", false},
		{[]string{"4.*", "[78].2.*"}, "7.2.22", true},
		{[]string{"4.*", "[78].2.*"}, "9.2.22", false},
		{[]string{"*"}, "unknown", true},
	} {
		require.Equal(t, tt.want, config.AgentVersions(tt.patterns).Support(tt.version), "%q %s", tt.patterns, tt.version)
	}
	require.Equal(t, "2.* and later", config.AgentVersions(nil).String())
	require.Equal(t, "1.*, 2.?", config.AgentVersions{"1.*", "2.?"}.String())
	c, faults := config.Resolve(&vmi.KubeVirt{Spec: vmi.KubeVirtSpec{Configuration: vmi.KubeVirtConfiguration{SupportedGuestAgentVersions: []string{"1.*"}}}})
	require.Empty(t, faults)
	require.Equal(t, config.AgentVersions{"1.*"}, c.Agents)
}
