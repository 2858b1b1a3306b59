package jsontree_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/podvisor/podvisor/internal/vmi/jsontree"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// requireSame requires that the tree is what the JSON of v decodes to.
func requireSame(t *testing.T, v any) {
	t.Helper()
	want, err := json.Marshal(v)
	require.NoError(t, err)
	tree, err := jsontree.Of(v)
	require.NoError(t, err)
	got, err := json.Marshal(tree)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(got))
}

func TestATreeIsWhatItsJSONDecodesTo(t *testing.T) {
	t.Parallel()
	v := vmitest.New(vmitest.WithMemory("64Mi"), vmitest.WithMasquerade("default", vmi.Port{Port: 80}), vmitest.WithContainerDisk("root", "example/root"))
	v.CreationTimestamp, v.Annotations = metav1.Unix(1<<30, 0), map[string]string{"a": "<b>"}
	v.Status.Conditions = []vmi.Condition{{Type: vmi.ConditionReady, Status: corev1.ConditionTrue}}
	requireSame(t, v)
	requireSame(t, &v.Spec)
	requireSame(t, &v.Status)
	for _, k := range kinds.All() {
		requireSame(t, k.New())
	}
}

// filler makes values that JSON can have, and leaves half of what is optional out.
func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.5).NumElements(0, 2).MaxDepth(20).Funcs(
		func(s *string, c randfill.Continue) { *s = fmt.Sprintf("s%x", c.Uint32()%3) },
		func(n *uint64, c randfill.Continue) { *n = c.Uint64() >> 1 },
		func(f *float32, c randfill.Continue) { *f = float32(c.Uint32()%9) / 2 },
		func(q *resource.Quantity, _ randfill.Continue) { *q = resource.MustParse("1.5Gi") },
		func(i *intstr.IntOrString, c randfill.Continue) { *i = intstr.FromInt32(int32(c.Uint32() % 9)) },
		func(at *metav1.Time, c randfill.Continue) { *at = metav1.Unix(int64(c.Uint32()), 0) },
		func(m *metav1.ObjectMeta, _ randfill.Continue) { m.Name = "a" },
	)
}

func TestATreeOfAnyValuesIsWhatTheirJSONDecodesTo(t *testing.T) {
	t.Parallel()
	for _, k := range kinds.All() {
		t.Run(k.Kind, func(t *testing.T) {
			t.Parallel()
			for seed := range int64(20) {
				o := k.New()
				filler(seed).Fill(o)
				requireSame(t, o)
			}
		})
	}
}

func TestALargeNumberKeepsItsDigits(t *testing.T) {
	t.Parallel()
	v := vmitest.New()
	v.Status.RuntimeUser = math.MaxUint64
	requireSame(t, v)
}

func TestWhatIsNoJSONIsAnError(t *testing.T) {
	t.Parallel()
	_, err := jsontree.Of(&struct{ F func() }{func() {}})
	require.Error(t, err)
}

func ExampleOf() {
	tree, err := jsontree.Of(&vmi.Memory{})
	fmt.Println(tree, err)
	// Output: map[] <nil>
}
