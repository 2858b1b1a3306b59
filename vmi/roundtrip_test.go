package vmi_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
)

// conformance is where the data of KubeVirt's API are, if they are here.
const conformance = "../../shared/conformance"

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	require.NoError(t, vmi.AddToScheme(s))
	return s
}

// manifest is a document of a manifest: as it is written, and as an object.
type manifest struct {
	text   map[string]any
	object runtime.Object
}

// decode reads a manifest strictly: a field that the types do not know is an
// error. The object is nil if the document is of another kind.
func decode(t *testing.T, file string) manifest {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	var m manifest
	require.NoError(t, yaml.Unmarshal(b, &m.text))
	var meta metav1.TypeMeta
	require.NoError(t, yaml.Unmarshal(b, &meta))
	m.object, err = scheme(t).New(schema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind))
	if err != nil {
		m.object = nil
		return m
	}
	require.NoError(t, yaml.UnmarshalStrict(b, m.object), "a field has no type")
	return m
}

func TestAManifestLosesNothingWhenItIsReadAndWritten(t *testing.T) {
	files, err := filepath.Glob("../examples/*.yaml")
	require.NoError(t, err)
	for _, dir := range []string{"examples", "vmi", "defaulted"} {
		more, err := filepath.Glob(filepath.Join(conformance, dir, "*.yaml"))
		require.NoError(t, err)
		files = append(files, more...)
	}
	read := 0
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), func(t *testing.T) {
			m := decode(t, file)
			if m.object == nil {
				t.Logf("%s %s is no kind of this package", m.text["apiVersion"], m.text["kind"])
				return
			}
			read++
			written, err := json.Marshal(m.object)
			require.NoError(t, err)
			var got map[string]any
			require.NoError(t, json.Unmarshal(written, &got))
			prune(got)
			prune(m.text)
			require.Equal(t, m.text, got)
		})
	}
	t.Logf("%d of %d manifests are of the kinds of this package", read, len(files))
}

// prune removes the empty values that are written for an absent one, or not
// written although they were there. All other empty objects mean something by being
// there, as in masquerade: {}.
func prune(m map[string]any) {
	for k, v := range m {
		switch v := v.(type) {
		case nil:
			delete(m, k)
		case float64:
			if v == 0 && k == "runtimeUser" {
				delete(m, k)
			}
		case map[string]any:
			prune(v)
			if len(v) == 0 && meaningless[k] {
				delete(m, k)
			}
		case []any:
			for _, e := range v {
				if e, ok := e.(map[string]any); ok {
					prune(e)
				}
			}
		}
	}
}

var meaningless = map[string]bool{"metadata": true, "status": true, "resources": true, "devices": true, "guestOSInfo": true}
