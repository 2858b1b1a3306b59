package testenv

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatRootOfAContainerLacksIsNamed(t *testing.T) {
	t.Parallel()
	require.Empty(t, lacking("Name:\tx\nCapEff:\t000001ffffffffff\n"))
	require.Equal(t, []string{"CAP_NET_ADMIN", "CAP_SYS_ADMIN", "CAP_SYS_PTRACE"}, lacking("Name:\tx\nCapEff:\t00000000a80425fb\nCapBnd:\t0\n"), "the capabilities that containers get")
	require.Len(t, lacking(""), len(capabilities))
}
