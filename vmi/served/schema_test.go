package served

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/internal/vmi/schema"
	"github.com/podvisor/podvisor/vmi"
)

// structure is what a schema says about which fields there are.
type structure struct {
	Properties           map[string]structure `json:"properties"`
	AdditionalProperties *structure           `json:"additionalProperties"`
	Items                *structure           `json:"items"`
	Enum                 []any                `json:"enum"`
	Free                 bool                 `json:"x-kubernetes-preserve-unknown-fields"`
	Description          string               `json:"description"`
	Rules                []struct {
		Rule string `json:"rule"`
	} `json:"x-kubernetes-validations"`
}

// refuses says that the schema has the field only to refuse it with a reason.
func (s structure) refuses() bool {
	return strings.HasPrefix(s.Description, "Not served: ") && len(s.Rules) == 1 && s.Rules[0].Rule == "false"
}

// served are the kinds that have a schema.
func served() []vmi.Definition {
	return slices.DeleteFunc(vmi.Definitions(), func(d vmi.Definition) bool {
		_, err := os.Stat(file(d))
		return err != nil
	})
}

// file is where the schema of the kind is, if it is served.
func file(d vmi.Definition) string {
	return "../../manifests/crds/" + d.Group + "_" + d.Plural + ".yaml"
}

func schemaOf(t *testing.T, d vmi.Definition) structure {
	t.Helper()
	b, err := os.ReadFile(file(d))
	require.NoError(t, err)
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema structure `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	require.NoError(t, yaml.Unmarshal(b, &crd))
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// unknown are the fields of the value that the schema does not have, or refuses, without
// those below them.
func (s structure) unknown(at *field.Path, v any) []string {
	var out []string
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			out = append(out, s.Items.unknown(at.Index(i), e)...)
		}
	case map[string]any:
		for k, below := range v {
			p, ok := s.Properties[k]
			switch {
			case ok && p.refuses():
				out = append(out, at.Child(k).String())
			case ok:
				out = append(out, p.unknown(at.Child(k), below)...)
			case s.AdditionalProperties != nil:
				out = append(out, s.AdditionalProperties.unknown(at.Key(k), below)...)
			case !s.Free:
				out = append(out, at.Child(k).String())
			}
		}
	}
	return out
}

// filler sets each field to a value that is not left out.
func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0).NumElements(1, 3).MaxDepth(30).Funcs(
		func(s *string, c randfill.Continue) { *s = fmt.Sprintf("s%x", c.Uint32()) },
		func(b *bool, _ randfill.Continue) { *b = true },
		func(q *resource.Quantity, _ randfill.Continue) { *q = resource.MustParse("1Mi") },
		func(i *intstr.IntOrString, _ randfill.Continue) { *i = intstr.FromInt32(1) },
		func(at *metav1.Time, _ randfill.Continue) { *at = metav1.Unix(1, 0) },
		func(f *float32, _ randfill.Continue) { *f = 1 },
		func(_ *metav1.ObjectMeta, _ randfill.Continue) {},
		func(_ *metav1.TypeMeta, _ randfill.Continue) {},
	)
}

// What is found in an object with all fields is what the API server would not
// know in it, neither more nor less.
func TestWhatIsFoundIsWhatTheSchemaDoesNotHave(t *testing.T) {
	t.Parallel()
	require.NotEmpty(t, served())
	for _, d := range served() {
		kind := d.Kind
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			schema := schemaOf(t, d)
			for seed := range int64(5) {
				filled := d.New()
				filler(seed).Fill(filled)
				b, err := json.Marshal(filled)
				require.NoError(t, err)
				o := object(t, string(b))
				delete(o, "metadata")
				var found []string
				for _, f := range Unserved(kind).In(o) {
					require.Empty(t, f.Value, "the filler sets no value of an enumeration")
					found = append(found, f.Path)
				}
				require.NotEmpty(t, found)
				require.ElementsMatch(t, schema.unknown(nil, o), found)
				Unserved(kind).Prune(o)
				require.Empty(t, schema.unknown(nil, o))
			}
		})
	}
}

func TestAValueIsNotInTheSchemaButItsFieldIs(t *testing.T) {
	t.Parallel()
	n := 0
	for _, d := range served() {
		for _, f := range Unserved(d.Kind) {
			if f.Value == "" {
				continue
			}
			n++
			s := schemaOf(t, d)
			for _, step := range f.steps() {
				s = s.Properties[strings.TrimRight(step, "[]{}")]
				switch {
				case s.Items != nil:
					s = *s.Items
				case s.AdditionalProperties != nil:
					s = *s.AdditionalProperties
				}
			}
			if len(s.Enum) == 0 { // a rule has the values
				o := map[string]any{}
				below := o
				steps := f.steps()
				for _, step := range steps[:len(steps)-1] {
					next := map[string]any{}
					below[step], below = next, next
				}
				below[steps[len(steps)-1]] = f.Value
				require.True(t, slices.ContainsFunc(schema.Faults(d.Kind, o), func(e *field.Error) bool { return e.Field == f.Path }), f.Path)
				continue
			}
			require.NotContains(t, s.Enum, f.Value, f.Path)
		}
	}
	t.Logf("%d values are not served", n)
}

func TestAKindWithoutASchemaIsNotServed(t *testing.T) {
	t.Parallel()
	for _, d := range vmi.Definitions() {
		_, err := os.Stat(file(d))
		for _, f := range Unserved(d.Kind) {
			require.Equal(t, err == nil, f.Path != "", d.Kind)
			require.NotEmpty(t, f.Why, "%s: %s", d.Kind, f.Path)
		}
	}
}
