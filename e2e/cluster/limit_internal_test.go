package cluster

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	const instances, watches = "fs/inotify/max_user_instances", "fs/inotify/max_user_watches"
	sysctls, dir := t.TempDir(), t.TempDir()
	set := func(name string, value int) {
		path := filepath.Join(sysctls, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(strconv.Itoa(value)+"\n"), 0o600))
	}
	named := func(name string) Config {
		c, err := Config{Name: name, Dir: dir, sysctls: sysctls}.complete()
		require.NoError(t, err)
		return c
	}
	get := func(name string) int {
		value, err := named("").sysctl(name)
		require.NoError(t, err)
		return value
	}
	one, two := named("one"), named("two")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "clusters"), 0o755))
	set(instances, 128)
	set(watches, 2<<20)

	require.NoError(t, one.claim())
	require.Equal(t, limits[instances], get(instances), "the first cluster raises what is too low")
	require.Equal(t, 2<<20, get(watches), "and leaves what is enough")
	require.NoError(t, two.claim())
	require.NoError(t, os.RemoveAll(one.state()))
	require.NoError(t, one.release())
	require.Equal(t, limits[instances], get(instances), "another cluster needs it")
	require.NoError(t, os.RemoveAll(two.state()))
	require.NoError(t, two.release())
	require.Equal(t, 128, get(instances), "the last cluster puts it back")
	require.NoFileExists(t, one.savedLimits())

	require.NoError(t, one.claim())
	set(instances, 500)
	require.NoError(t, os.RemoveAll(one.state()))
	require.NoError(t, one.release())
	require.Equal(t, 500, get(instances), "what another program has set meanwhile stays")
}
