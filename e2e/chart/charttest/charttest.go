// Package charttest runs Helm in tests.
package charttest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/podvisor/podvisor/e2e/toolchain"
)

// Helm is Helm with folders of its own.
type Helm struct {
	t    *testing.T
	path string
	env  []string
}

// New builds Helm, unless it is in the cache. Kubeconfig says which cluster it is for. Empty: for
// none.
func New(t *testing.T, kubeconfig string) Helm {
	t.Helper()
	path, err := toolchain.Helm(t.Context(), toolchain.Config{Out: os.Stdout})
	require.NoError(t, err)
	dir := t.TempDir()
	return Helm{t, path, append(os.Environ(), "KUBECONFIG="+kubeconfig,
		"HELM_CACHE_HOME="+dir, "HELM_CONFIG_HOME="+dir, "HELM_DATA_HOME="+dir)}
}

// Try runs Helm, and returns what it wrote, its errors among it.
func (h Helm) Try(args ...string) (string, error) {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), h.path, args...)
	cmd.Env = h.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Run runs Helm, which must succeed.
func (h Helm) Run(args ...string) string {
	h.t.Helper()
	out, err := h.Try(args...)
	require.NoError(h.t, err, "helm %v: %s", args, out)
	return out
}

// Objects are the objects in a text, by kind, namespace and name. The policy by which Helm keeps
// an object is left out.
func Objects(t *testing.T, text []byte) map[string]unstructured.Unstructured {
	t.Helper()
	all := map[string]unstructured.Unstructured{}
	in := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var o unstructured.Unstructured
		err := in.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		if o.Object == nil {
			continue
		}
		annotations := o.GetAnnotations()
		if o.GetKind() == "CustomResourceDefinition" {
			delete(annotations, "helm.sh/resource-policy")
		}
		o.SetAnnotations(annotations)
		key := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
		require.NotContains(t, all, key)
		all[key] = o
	}
}
