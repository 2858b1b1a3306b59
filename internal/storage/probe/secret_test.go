package probe_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/internal/storage/probe"
)

// mounted makes a folder as the kubelet makes one for a Secret, or replaces what is in it.
func mounted(t *testing.T, dir, version string, values map[string][]byte) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, version), 0o755))
	for name, content := range values {
		require.NoError(t, os.WriteFile(filepath.Join(dir, version, name), content, 0o644))
		_ = os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name))
	}
	require.NoError(t, os.Symlink(version, filepath.Join(dir, "..new")))
	require.NoError(t, os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")))
}

func TestASecretIsReadInOneVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := map[string][]byte{"a": []byte("1"), "b": {}}
	mounted(t, dir, "..2026_1", first)
	got, ok, err := probe.Secret(dir)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, first, got)

	mounted(t, dir, "..2026_2", map[string][]byte{"c": []byte("2")})
	got, _, err = probe.Secret(dir)
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{"c": []byte("2")}, got, "the links of keys that are gone count for nothing")
}

func TestNoSecretIsAFact(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"no folder": filepath.Join(t.TempDir(), "none"), "an empty folder": t.TempDir()} {
		_, ok, err := probe.Secret(dir)
		require.NoError(t, err, name)
		require.False(t, ok, name)
	}
}

func TestAttackASecretLeadsToNoOtherFile(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, []byte("of the node"), 0o644))

	dir := t.TempDir()
	mounted(t, dir, "..2026_1", map[string][]byte{"a": []byte("1")})
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "..2026_1", "b")))
	got, _, err := probe.Secret(dir)
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{"a": []byte("1")}, got)

	away := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(away, "..data")))
	_, _, err = probe.Secret(away)
	require.Error(t, err)
}

func TestASecretThatIsTooLargeIsNotRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	half := make([]byte, corev1.MaxSecretSize/2+1)
	mounted(t, dir, "..2026_1", map[string][]byte{"a": half, "b": half})
	_, _, err := probe.Secret(dir)
	require.ErrorContains(t, err, "more than 1048576 bytes")
}
