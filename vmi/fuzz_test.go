package vmi_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/podvisor/podvisor/vmi"
)

// filler fills objects with random values that JSON can hold.
func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.3).NumElements(1, 3).MaxDepth(30).Funcs(
		func(s *string, c randfill.Continue) { *s = fmt.Sprintf("s%x", c.Uint32()) },
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse(fmt.Sprintf("%dMi", 1+c.Intn(4000)))
		},
		func(i *intstr.IntOrString, c randfill.Continue) { *i = intstr.FromInt32(c.Int31()) },
		func(at *metav1.Time, c randfill.Continue) { *at = metav1.NewTime(time.Unix(c.Int63n(1<<32), 0)) },
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			m.Name, m.Namespace = "a", "b"
			c.Fill(&m.Labels)
			c.Fill(&m.Annotations)
		},
		func(m *metav1.TypeMeta, _ randfill.Continue) {},
		func(f *float32, c randfill.Continue) { *f = float32(c.Intn(1000)) / 2 },
	)
}

func objects() []runtime.Object {
	return []runtime.Object{
		&vmi.VirtualMachineInstance{}, &vmi.VirtualMachine{}, &vmi.VirtualMachineInstanceReplicaSet{},
		&vmi.VirtualMachineInstanceMigration{}, &vmi.KubeVirt{},
	}
}

func TestARandomObjectSurvivesJSONAndCopying(t *testing.T) {
	for _, empty := range objects() {
		kind := reflect.TypeOf(empty).Elem()
		t.Run(kind.Name(), func(t *testing.T) {
			for seed := range int64(200) {
				in := reflect.New(kind).Interface().(runtime.Object)
				filler(seed).Fill(in)

				written, err := json.Marshal(in)
				require.NoError(t, err)
				out := reflect.New(kind).Interface().(runtime.Object)
				require.NoError(t, json.Unmarshal(written, out))
				again, err := json.Marshal(out)
				require.NoError(t, err)
				require.JSONEq(t, string(written), string(again), "seed %d", seed)

				copied := in.DeepCopyObject()
				require.Equal(t, in, copied, "seed %d", seed)
				shareNothing(t, kind.Name(), reflect.ValueOf(in), reflect.ValueOf(copied))
			}
		})
	}
}

// shareNothing fails if the two values, which are equal, have a pointer, a list
// or a map in common.
func shareNothing(t *testing.T, at string, a, b reflect.Value) {
	t.Helper()
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() {
			return
		}
		if a.Type().Elem().Size() > 0 && a.Type() != reflect.TypeFor[*time.Location]() {
			require.NotEqual(t, a.Pointer(), b.Pointer(), "%s is shared with the copy", at)
			shareNothing(t, at, a.Elem(), b.Elem())
		}
	case reflect.Slice:
		if a.Len() > 0 {
			require.NotEqual(t, a.Pointer(), b.Pointer(), "%s is shared with the copy", at)
		}
		for i := range a.Len() {
			shareNothing(t, fmt.Sprintf("%s[%d]", at, i), a.Index(i), b.Index(i))
		}
	case reflect.Map:
		if a.Len() > 0 {
			require.NotEqual(t, a.Pointer(), b.Pointer(), "%s is shared with the copy", at)
		}
	case reflect.Struct:
		for i := range a.NumField() {
			if f := a.Type().Field(i); f.IsExported() {
				shareNothing(t, at+"."+f.Name, a.Field(i), b.Field(i))
			}
		}
	}
}
