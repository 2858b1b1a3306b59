package served

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/randfill"

	"github.com/podvisor/podvisor/internal/vmi/jsontree"
	"github.com/podvisor/podvisor/vmi"
)

// filledWhole is what Filled is to return, of the trees of whole objects.
func (l Fields) filledWhole(t *testing.T, raw map[string]any, v, done any) map[string]any {
	t.Helper()
	from, err := jsontree.Of(v)
	require.NoError(t, err)
	to, err := jsontree.Of(done)
	require.NoError(t, err)
	l.Prune(from)
	l.Prune(to)
	out := added(raw, from, to)
	if all, ok := to["metadata"].(map[string]any)["finalizers"]; ok {
		out["metadata"].(map[string]any)["finalizers"] = all
	}
	return out
}

// sparse makes objects that leave so much out.
func sparse(seed int64, without float64) *randfill.Filler {
	return filler(seed).NilChance(without).NumElements(0, 2).Funcs(func(n *uint64, c randfill.Continue) { *n = c.Uint64() >> 1 })
}

// digits decodes JSON and keeps the digits of numbers.
func digits(t *testing.T, text []byte) (out map[string]any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	require.NoError(t, d.Decode(&out))
	return out
}

// Most of an object is never made a tree. The result is the same as if all of it were.
func TestWhatIsAddedDoesNotDependOnWhatIsCompared(t *testing.T) {
	t.Parallel()
	for _, d := range vmi.Definitions() {
		t.Run(d.Kind, func(t *testing.T) {
			t.Parallel()
			grown, known := 0, 0
			for seed := range int64(40) {
				written, more := d.New(), d.New()
				sparse(seed, 0.7).Fill(written)
				sparse(seed+1000, 0.5).Fill(more)
				written.SetName("a")
				more.SetLabels(map[string]string{"b": "c"})
				more.SetFinalizers([]string{"d"}[seed%2:])
				text, err := json.Marshal(written)
				require.NoError(t, err)
				addition, err := json.Marshal(more)
				require.NoError(t, err)
				v := d.New()
				require.NoError(t, json.Unmarshal(text, v))
				done := v.DeepCopyObject()
				require.NoError(t, json.Unmarshal(addition, done))
				raw := digits(t, text)
				for _, l := range []Fields{Unserved(d.Kind), nil} {
					got, decoded, err := l.Fill(raw, v, done)
					require.NoError(t, err)
					is, err := json.Marshal(got)
					require.NoError(t, err)
					again := digits(t, text)
					require.Equal(t, again, raw, "what was written is not changed")
					want, err := json.Marshal(l.filledWhole(t, again, v, done))
					require.NoError(t, err)
					require.JSONEq(t, string(want), string(is))
					if len(is) > len(text) {
						grown++
					}
					if decoded != nil {
						known++
						of := d.New()
						require.NoError(t, json.Unmarshal(is, of))
						require.True(t, equality.Semantic.DeepEqual(of, decoded), "what is returned is not what the result decodes to: %s", is)
					}
				}
			}
			require.Greater(t, grown, 20, "the test adds something")
			require.Positive(t, known, "the test compares what is decoded")
		})
	}
}
