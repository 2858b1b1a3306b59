package toolchain

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
)

func TestSource(t *testing.T) {
	dir, err := Source()
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "source.go"))
}

func TestRequired(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mod := "module x\n\nrequire example.com/one v1.0.0\n\nrequire (\n\texample.com/two/v2 v2.3.4 // indirect\n)\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o600))
	for module, want := range map[string]string{"example.com/one": "v1.0.0", "example.com/two/v2": "v2.3.4"} {
		got, err := required(dir, module)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := required(dir, "example.com/two")
	require.ErrorContains(t, err, "does not require example.com/two")
}

func TestKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	write("main.go", "package main")
	p := part{name: "p", version: "v1", dir: dir, programs: []program{{output: "p", pkg: "."}}}
	key := func(p part) string {
		k, err := p.key()
		require.NoError(t, err)
		return k
	}
	first := key(p)
	require.True(t, strings.HasPrefix(first, "p-v1-"), first)
	require.Equal(t, first, key(p))

	write("README", "not a source")
	require.Equal(t, first, key(p), "what is not built does not count")

	tagged := p
	tagged.programs = []program{{output: "p", pkg: ".", tags: "seccomp"}}
	require.NotEqual(t, first, key(tagged), "flags count")
	write("go.sum", "x")
	require.NotEqual(t, first, key(p), "the modules' sums count")
}

func TestParts(t *testing.T) {
	t.Parallel()
	source, err := Source()
	require.NoError(t, err)
	k, err := kubernetes(source)
	require.NoError(t, err)
	require.Contains(t, k.programs[0].ldflags, "gitVersion="+k.version)
	require.Contains(t, k.links, "kubelet")
	v, err := virtctl(source)
	require.NoError(t, err)
	require.Equal(t, "kubevirt.io/kubevirt/cmd/virtctl", v.programs[0].pkg)
	require.Contains(t, v.programs[0].ldflags, "gitVersion="+v.version)
	for _, module := range []string{"api", "client-go"} {
		mod, err := os.ReadFile(filepath.Join(v.dir, "go.mod"))
		require.NoError(t, err)
		require.Contains(t, string(mod), "kubevirt.io/"+module+" => kubevirt.io/"+module+" "+v.version, "the module names its own by a folder")
	}
	h, err := helm(source)
	require.NoError(t, err)
	require.Equal(t, "-X helm.sh/helm/v4/internal/version.version="+h.version, h.programs[0].ldflags)
	old, err := oldest(source)
	require.NoError(t, err)
	require.Regexp(t, `^v1\.32\.`, old.version)
	require.Contains(t, old.programs[0].ldflags, "gitMinor=32 ")
	m, err := prometheus(source)
	require.NoError(t, err)
	require.Equal(t, "github.com/prometheus/prometheus/cmd/prometheus", m.programs[0].pkg)
	r, err := containers(source)
	require.NoError(t, err)
	var outputs []string
	for _, p := range r.programs {
		outputs = append(outputs, p.output)
	}
	require.Equal(t, []string{"containerd", "containerd-shim-runc-v2", "ctr", "cni/host-local", "cni/bridge",
		"cni/loopback", "cni/macvlan", "cni/portmap", "cni/multus-shim", "multus-daemon", "runc"}, outputs)
}

func TestBuild(t *testing.T) {
	testenv.Program(t, "go")
	source, err := Source()
	require.NoError(t, err)
	p, err := pause(source)
	require.NoError(t, err)
	c := Config{Dir: t.TempDir(), Out: io.Discard}

	t.Run("two builds at once make one result", func(t *testing.T) {
		require.NoError(t, os.MkdirAll(filepath.Join(c.Dir, "pause.tmp123", "remains of a killed build"), 0o755))
		var both sync.WaitGroup
		dirs, errs := make([]string, 2), make([]error, 2)
		for i := range dirs {
			both.Go(func() { dirs[i], errs[i] = c.build(t.Context(), p) })
		}
		both.Wait()
		require.Equal(t, []error{nil, nil}, errs)
		require.Equal(t, dirs[0], dirs[1])
		entries, err := os.ReadDir(dirs[0])
		require.NoError(t, err)
		require.Len(t, entries, 2, "pause and pause.tar")
		remains, err := filepath.Glob(filepath.Join(c.Dir, "*.tmp*"))
		require.NoError(t, err)
		require.Empty(t, remains)
	})
	t.Run("what is there is not built again", func(t *testing.T) {
		var out bytes.Buffer
		c := c
		c.Out = &out
		_, err := c.build(t.Context(), p)
		require.NoError(t, err)
		require.Empty(t, out.String())
	})
	t.Run("a build that fails says why and leaves nothing in the cache", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() { missing() }\n"), 0o600))
		broken := part{name: "broken", version: "v1", dir: dir, programs: []program{{output: "x", pkg: "main.go"}}}
		_, err := c.build(t.Context(), broken)
		require.ErrorContains(t, err, "undefined: missing")
		entries, err := os.ReadDir(c.Dir)
		require.NoError(t, err)
		for _, e := range entries {
			require.True(t, e.Name() == "broken.lock" || !strings.HasPrefix(e.Name(), "broken"), e.Name())
		}
	})
	t.Run("a build that is cancelled says so", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		fresh := c
		fresh.Dir = t.TempDir()
		_, err := fresh.build(ctx, p)
		require.ErrorIs(t, err, context.Canceled)
	})
}
