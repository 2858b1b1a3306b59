package vmi_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
)

// decode reads a manifest strictly: a field that the types do not know is an
// error.
func decode(t *testing.T, file string) *vmi.VirtualMachineInstance {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	var v vmi.VirtualMachineInstance
	require.NoError(t, yaml.UnmarshalStrict(b, &v))
	return &v
}

func TestAManifestLosesNothingWhenItIsReadAndWritten(t *testing.T) {
	own, err := filepath.Glob("../examples/vmi-*.yaml")
	require.NoError(t, err)
	files := append(own,
		"../../shared/conformance/examples/vmi-nocloud.yaml",
		"../../shared/conformance/examples/vmi-masquerade.yaml")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if _, err := os.Stat(file); err != nil {
				t.Skip("the conformance data is not here")
			}
			written, err := json.Marshal(decode(t, file))
			require.NoError(t, err)
			var got, want map[string]any
			require.NoError(t, json.Unmarshal(written, &got))
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, yaml.Unmarshal(b, &want))
			prune(got)
			prune(want)
			require.Equal(t, want, got)
		})
	}
}

// prune removes what JSON writes for an absent value: null, {} and []; an empty
// object that chooses a kind (masquerade: {}) is kept by its parent being
// compared in both.
func prune(m map[string]any) {
	for k, v := range m {
		switch v := v.(type) {
		case nil:
			delete(m, k)
		case map[string]any:
			prune(v)
			if len(v) == 0 && !kinds[k] {
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

// kinds are empty objects that mean something by being there.
var kinds = map[string]bool{"masquerade": true, "bridge": true, "pod": true, "rng": true, "disk": true}

func TestTypesAreNamedAsInTheFieldList(t *testing.T) {
	const list = "../../shared/conformance/fields/virtualmachineinstances.kubevirt.io.txt"
	b, err := os.ReadFile(list)
	if err != nil {
		t.Skip("the conformance data is not here")
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && !strings.HasPrefix(line, "#") {
			known[f[0]] = true
		}
	}
	crd, err := os.ReadFile("../manifests/crds/kubevirt.io_virtualmachineinstances.yaml")
	require.NoError(t, err)
	var doc struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	require.NoError(t, yaml.Unmarshal(crd, &doc))
	root := doc.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, top := range []string{"spec", "status"} {
		for _, p := range paths(top, root.Properties[top]) {
			require.True(t, known[p] || core(p), "%s is no field of KubeVirt's", p)
		}
	}
}

// core says that the field is of a type of Kubernetes' own, which the list
// names without its fields.
func core(p string) bool { return strings.HasPrefix(p, "spec.tolerations[].") }

type schema struct {
	Properties           map[string]schema `json:"properties"`
	Items                *schema           `json:"items"`
	AdditionalProperties *schema           `json:"additionalProperties"`
}

// paths lists the fields below a field, written as in the field list.
func paths(prefix string, s schema) []string {
	out := []string{prefix}
	for name, p := range s.Properties {
		at := prefix + "." + name
		switch {
		case p.Items != nil:
			out = append(out, paths(at+"[]", *p.Items)...)
		case p.AdditionalProperties != nil:
			out = append(out, paths(at+"{}", *p.AdditionalProperties)...)
		default:
			out = append(out, paths(at, p)...)
		}
	}
	return out
}
