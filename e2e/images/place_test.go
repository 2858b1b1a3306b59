package images

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClonesAndVersionsKeepTheirArchives(t *testing.T) {
	t.Parallel()
	c := &cache{dir: t.TempDir(), out: io.Discard}
	one, other := filepath.Join(t.TempDir(), "podvisor"), filepath.Join(t.TempDir(), "podvisor")
	for _, root := range []string{one, other} {
		require.NoError(t, os.Mkdir(root, 0o755))
	}
	var all []string
	for _, conf := range []Config{
		{Root: one}, {Root: other}, {Root: one, Race: true}, {Root: one, Version: "v1.0.0"}, {Root: one, Version: "v1.1.0"}, {Root: one, Version: "v1.0.0", Tag: "mine"}, {Root: one, Tag: "mine"},
	} {
		dir, err := c.place(conf)
		require.NoError(t, err)
		require.NotContains(t, all, dir, "%+v", conf)
		again, err := c.place(conf)
		require.NoError(t, err)
		require.Equal(t, dir, again)
		all = append(all, dir)
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}

	layers := c.path("layers")
	require.NoError(t, os.MkdirAll(layers, 0o755))
	file := func(of string) string {
		name := filepath.Join(layers, "virt-launcher-"+of+".tar")
		require.NoError(t, os.WriteFile(name, nil, 0o600))
		return name
	}
	noted := func(dir, layer string) {
		c.built = dir
		require.NoError(t, c.record("id", Built{Name: "virt-launcher", Architecture: amd64}, []string{layer}))
	}
	mine, its, old := file("0123456789abcdef0123456789abcdef"), file("123456789abcdef0123456789abcdef0"), file("23456789abcdef0123456789abcdef01")
	full := filepath.Join(layers, "virt-launcher-full-0123456789abcdef0123456789abcdef.tar")
	require.NoError(t, os.WriteFile(full, nil, 0o600))
	noted(all[0], mine)
	noted(all[1], its)
	c.forget("virt-launcher")
	require.FileExists(t, mine)
	require.FileExists(t, its, "a layer of the other clone")
	require.FileExists(t, full, "a layer of another image")
	require.NoFileExists(t, old)

	require.NoError(t, os.Remove(other))
	_, err := c.place(Config{Root: one})
	require.NoError(t, err)
	require.NoDirExists(t, all[1], "the clone is gone")
	c.forget("virt-launcher")
	require.NoFileExists(t, its)
	require.FileExists(t, mine)
}

func TestAnImageSaysWhatItWasBuiltFrom(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
			"GIT_AUTHOR_DATE=2026-01-02T03:04:05+0100", "GIT_COMMITTER_DATE=2026-01-02T03:04:05+0100", "GIT_CONFIG_GLOBAL=/dev/null")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	conf := Config{version: Version(t.Context(), root, "")}
	require.Equal(t, map[string]string{"a": "b"}, conf.labels(List{Name: "virt-handler", Labels: map[string]string{"a": "b"}}), "no checkout")

	git("init", "-q")
	require.NoError(t, os.WriteFile(filepath.Join(root, "file"), nil, 0o600))
	git("add", "file")
	git("commit", "-q", "-m", "one")
	v := Version(t.Context(), root, "")
	require.Regexp(t, `^[0-9a-f]{40}$`, v.Commit)
	require.Equal(t, "v0.0.0-20260102020405-"+v.Commit[:12], v.Version)
	require.Equal(t, "2026-01-02T02:04:05Z", v.Date)
	require.False(t, v.Dirty)

	conf = Config{version: Version(t.Context(), root, "v0.3.0")}
	l := List{Name: "virt-handler", Labels: map[string]string{"a": "b"}}
	require.Equal(t, map[string]string{
		"a": "b", "org.opencontainers.image.version": "v0.3.0", "org.opencontainers.image.revision": v.Commit, "org.opencontainers.image.created": v.Date,
	}, conf.labels(l))
	require.Len(t, l.Labels, 1, "the list is not changed")
	require.Empty(t, conf.labels(List{Name: "tools"}), "images of tests are the same at each commit")

	require.NoError(t, os.WriteFile(filepath.Join(root, "new"), nil, 0o600))
	v = Version(t.Context(), root, "")
	require.True(t, v.Dirty)
	require.Regexp(t, `\+dirty$`, v.Version)
}

func TestTheComponentsAreWhatAnInstallationNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"virt-controller", "virt-handler", "virt-launcher", "virt-launcher-full"}, Components())
	require.Equal(t, "localhost/podvisor/virt-handler:v0.3.0", reference("virt-handler", "v0.3.0"))
	var r record
	require.NoError(t, json.Unmarshal([]byte(`{"id":"a","layers":["b"],"name":"c","tar":"d"}`), &r))
	require.Equal(t, record{ID: "a", Layers: []string{"b"}, Built: Built{Name: "c", Tar: "d"}}, r)
}
