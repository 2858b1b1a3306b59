package nft

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/network"
)

// Whoever has the pod's network namespace makes any number of tables in it.
func TestAttackByANamespaceWithManyTables(t *testing.T) {
	ns := networktest.Namespace(t)
	applied := func() uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.NoError(t, Apply(ns, cases["everything"]))
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	applied()
	few := applied()
	var all strings.Builder
	for i := range 3_000 {
		fmt.Fprintf(&all, "add table ip t%d\n", i)
	}
	file := filepath.Join(t.TempDir(), "tables")
	require.NoError(t, os.WriteFile(file, []byte(all.String()), 0o600))
	networktest.Run(t, ns, testenv.Program(t, "nft"), "-f", file)
	many := applied()
	t.Logf("%d KiB, and with 3,000 tables %d KiB", few>>10, many>>10)
	require.Less(t, many, few+512<<10, "they are not read")

	require.NoError(t, Apply(ns, network.Config{}))
	require.NotContains(t, networktest.Run(t, ns, testenv.Program(t, "nft"), "list", "tables"), tableName, "its own are gone")
}
