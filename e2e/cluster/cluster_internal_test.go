package cluster

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/e2e/cluster/plan"
)

func TestComplete(t *testing.T) {
	t.Parallel()
	got, err := Config{Dir: "/d"}.complete()
	require.NoError(t, err)
	require.Equal(t, "/d/clusters/dev", got.state())
	require.Equal(t, 2, got.Nodes)

	for _, wrong := range []Config{
		{Name: "Upper"}, {Name: "-a"}, {Name: "a/b"}, {Name: ".."}, {Name: strings.Repeat("a", 33)},
		{Nodes: -1}, {Nodes: plan.MaxNodes + 1}, {Extent: "half"},
	} {
		_, err := wrong.complete()
		require.ErrorContains(t, err, "invalid", "%+v", wrong)
	}
}

func TestOpenWhatIsNotThere(t *testing.T) {
	t.Parallel()
	c := Config{Dir: t.TempDir()}
	_, err := Open(c)
	require.ErrorIs(t, err, ErrNotFound)
	names, err := List(c)
	require.NoError(t, err)
	require.Empty(t, names)
}

func TestKeys(t *testing.T) {
	t.Parallel()
	p := plan.New(plan.Config{Name: "dev", Nodes: 2, State: "/s"})
	files, err := keys(p, 1234)
	require.NoError(t, err)

	t.Run("every file that the plan names is made", func(t *testing.T) {
		for _, m := range append([]plan.Host{p.ControlPlane}, p.Nodes...) {
			for _, program := range m.Programs {
				for _, arg := range program.Args {
					_, path, _ := strings.Cut(arg, "=")
					if name, ok := strings.CutPrefix(path, "/s/pki/"); ok {
						require.Contains(t, files, "pki/"+name, arg)
					}
				}
			}
		}
	})
	t.Run("every certificate fits its key", func(t *testing.T) {
		for name, cert := range files {
			if base, ok := strings.CutSuffix(name, ".crt"); ok && files[base+".key"] != nil {
				_, err := tls.X509KeyPair(cert, files[base+".key"])
				require.NoError(t, err, name)
			}
		}
	})
	t.Run("the kubeconfig needs no other file", func(t *testing.T) {
		require.Contains(t, string(files["kubeconfig"]), "server: https://127.0.0.1:1234")
		require.NotContains(t, string(files["kubeconfig"]), "/s/")
	})
	t.Run("keys are for root alone", func(t *testing.T) {
		for name := range files {
			if strings.HasSuffix(name, ".key") || name == "kubeconfig" {
				require.Equal(t, os.FileMode(0o600), mode(name), name)
			}
		}
	})
}

func TestArchive(t *testing.T) {
	t.Parallel()
	a := archive{digest: "d", names: []string{"x", "y"}}
	require.True(t, a.in(map[string]string{"x": "d", "y": "d", "z": "e"}))
	require.False(t, a.in(map[string]string{"x": "d"}), "a name is missing")
	require.False(t, a.in(map[string]string{"x": "d", "y": "e"}), "a name was given to something else since")
	require.False(t, archive{digest: "d"}.in(nil), "without a name nothing is known")
	require.True(t, a.listed("w\nx\ny\n"))
	require.False(t, a.listed("x\n"))
}

func TestMemo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "images.json")
	known, err := readMemo(path)
	require.NoError(t, err)
	require.Empty(t, known)
	require.NoError(t, writeJSON(path, map[string]string{"x": "d"}))
	known, err = readMemo(path)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"x": "d"}, known)
	require.NoError(t, os.WriteFile(path, []byte(`{"x":`), 0o600))
	known, err = readMemo(path)
	require.NoError(t, err)
	require.Empty(t, known, "a half written memo is forgotten")
}

func TestTail(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	require.Empty(t, tail(path, 2), "no file")
	require.NoError(t, os.WriteFile(path, []byte("a\nb\nc\n"), 0o600))
	require.Equal(t, "b\nc", tail(path, 2))
	require.Equal(t, "a\nb\nc", tail(path, 9))
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("long line\n", 100_000)+"end\n"), 0o600))
	require.Equal(t, "long line\nend", tail(path, 2))
}

func TestFailure(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "etcd.log")
	require.NoError(t, os.WriteFile(log, []byte("why\n"), 0o600))
	err := failure([]Problem{{What: "etcd on cp is broken", Log: log}, {What: "etcd again", Log: log}, {What: "node n1"}})
	require.EqualError(t, err, "it is not well:\n  - etcd on cp is broken ("+log+")\n  - etcd again ("+log+")\n  - node n1\n"+
		"the end of "+log+":\nwhy")
}
