package plan

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/internal/golden"
)

func config(extent Extent) Config {
	return Config{
		Name: "dev", Extent: extent, Nodes: 2, ID: "0123456789abcdef", State: "/cache/clusters/dev",
		Kubernetes: "/cache/toolchain/kubernetes", Runtime: "/cache/toolchain/runtime", CSI: "/cache/toolchain/csi", Policy: "/cache/toolchain/policy", PauseImage: "localhost/pause:v1",
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	p := New(config(Full))

	t.Run("the hosts and the arguments of their programs", func(t *testing.T) {
		data, err := json.MarshalIndent(p, "", "  ")
		require.NoError(t, err)
		golden.Equal(t, "testdata/plan.json", append(data, '\n'))
	})
	t.Run("the files", func(t *testing.T) {
		for name, content := range p.Files {
			if !strings.HasPrefix(name, "n2/") {
				golden.Equal(t, filepath.Join("testdata", name), []byte(content))
			}
		}
	})
	t.Run("another API server has the same arguments", func(t *testing.T) {
		c := config(APIServer)
		want := New(c).ControlPlane.Program("kube-apiserver").Args
		c.APIServer = "/cache/older/kube-apiserver"
		got := New(c).ControlPlane.Program("kube-apiserver").Args
		require.Equal(t, c.APIServer, got[0])
		require.Equal(t, want[1:], got[1:])
	})
	t.Run("there is no golden file without a file", func(t *testing.T) {
		require.NoError(t, filepath.WalkDir("testdata", func(path string, d os.DirEntry, err error) error {
			if name, _ := filepath.Rel("testdata", path); err == nil && !d.IsDir() && name != "plan.json" {
				require.Contains(t, p.Files, name)
			}
			return err
		}))
	})
	t.Run("the nodes differ in name, address and pods and in nothing else", func(t *testing.T) {
		swap := strings.NewReplacer("n1", "n2", "10.200.0.11", "10.200.0.12", "10.244.1.", "10.244.2.",
			"fd00:200::11", "fd00:200::12", "fd00:244:0:1:", "fd00:244:0:2:")
		for name, content := range p.Files {
			if strings.HasPrefix(name, "n1/") {
				require.Equal(t, p.Files["n2/"+name[len("n1/"):]], swap.Replace(content), name)
			}
		}
	})
	t.Run("configuration files are well-formed", func(t *testing.T) {
		for name, content := range p.Files {
			if ext := filepath.Ext(name); ext == ".yaml" || ext == ".kubeconfig" || ext == ".json" || ext == ".conf" || ext == ".conflist" {
				require.NoError(t, yaml.UnmarshalStrict([]byte(content), new(any)), name)
			}
			require.NotContains(t, content, "$", name+" has a placeholder left")
		}
	})
	t.Run("storing a plan loses nothing but the files", func(t *testing.T) {
		data, err := json.Marshal(p)
		require.NoError(t, err)
		var back Plan
		require.NoError(t, json.Unmarshal(data, &back))
		want := p
		want.Files = nil
		require.Equal(t, want, back)
	})
}

func TestNewAPIServer(t *testing.T) {
	t.Parallel()
	p := New(config(APIServer))
	names := []string{}
	for _, program := range p.ControlPlane.Programs {
		names = append(names, program.Name)
	}
	require.Equal(t, []string{"etcd", "kube-apiserver", "bootstrap"}, names)
	require.Empty(t, p.Nodes)
	require.Len(t, p.Files, 2)
}

func TestProgram(t *testing.T) {
	t.Parallel()
	m := Host{Programs: []Program{{Name: "a", Once: true}}}
	require.Equal(t, Program{Name: "a", Once: true}, m.Program("a"))
	require.Zero(t, m.Program("b"))
}
