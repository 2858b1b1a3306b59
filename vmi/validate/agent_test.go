package validate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/validate"
)

func TestPatternsForTheVersionsOfAgents(t *testing.T) {
	t.Parallel()
	faults := func(patterns ...string) (fields []string) {
		k := &vmi.KubeVirt{Spec: vmi.KubeVirtSpec{Configuration: vmi.KubeVirtConfiguration{SupportedGuestAgentVersions: patterns}}}
		for _, f := range validate.KubeVirt(k) {
			fields = append(fields, f.Field)
		}
		return fields
	}
	const at = "spec.configuration.supportedGuestAgentVersions"
	require.Empty(t, faults("2.*", "X.*", "7.2.22", "*", "[45].?.*", "10.0.0-rc1", strings.Repeat("7", 63)))
	for _, p := range []string{"", ".*", `5\.2`, "(4|5).*", "4.*|5.*", "4.+", "^4.*", "4.*$", "[45", "4 5", "4.*\n", strings.Repeat("7", 64)} {
		require.Equal(t, []string{at + "[1]"}, faults("2.*", p), "%q", p)
	}
	require.Empty(t, faults(slices.Repeat([]string{"5.*"}, 32)...))
	require.Equal(t, []string{at}, faults(slices.Repeat([]string{"5.*"}, 33)...))
	k := &vmi.KubeVirt{Spec: vmi.KubeVirtSpec{Configuration: vmi.KubeVirtConfiguration{SupportedGuestAgentVersions: []string{".*"}}}}
	require.ErrorContains(t, validate.KubeVirt(k).ToAggregate(), `Invalid value: ".*": must be a version of at most 63 characters in which * stands for any`)
}
