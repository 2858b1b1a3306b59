package served

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &o))
	return o
}

func TestFieldsAreFoundAndTakenOut(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fields     Fields
		in         string
		want       Fields
		wantPruned string
	}{
		"a field stands for all below it, and keeps its reason": {
			fields:     Fields{{Path: "spec.a", Why: "no a", Refused: true}},
			in:         `{spec: {a: {b: 1}, c: 2}}`,
			want:       Fields{{Path: "spec.a", Why: "no a", Refused: true}},
			wantPruned: `{spec: {c: 2}}`,
		},
		"a field that is not there is not found": {
			fields:     Fields{{Path: "spec.a"}, {Path: "spec.b.a"}, {Path: "status"}},
			in:         `{spec: {c: {a: 1}, b: {}}}`,
			wantPruned: `{spec: {c: {a: 1}, b: {}}}`,
		},
		"what is false, empty or null is there": {
			fields:     Fields{{Path: "a"}, {Path: "b"}, {Path: "c"}, {Path: "d"}},
			in:         `{a: false, b: "", c: null, d: {}}`,
			want:       Fields{{Path: "a"}, {Path: "b"}, {Path: "c"}, {Path: "d"}},
			wantPruned: `{}`,
		},
		"elements are found by their number, the tenth after the second": {
			fields:     Fields{{Path: "l[].b"}, {Path: "l[].a"}},
			in:         `{l: [{}, {}, {a: 1, b: 1, c: 1}, {}, {}, {}, {}, {}, {}, {}, {a: 1}]}`,
			want:       Fields{{Path: "l[2].a"}, {Path: "l[2].b"}, {Path: "l[10].a"}},
			wantPruned: `{l: [{}, {}, {c: 1}, {}, {}, {}, {}, {}, {}, {}, {}]}`,
		},
		"values of a map are found by their key": {
			fields:     Fields{{Path: "m{}.a"}},
			in:         `{m: {k: {a: 1}, i: {a: 1, b: 2}, l: {}}}`,
			want:       Fields{{Path: "m[i].a"}, {Path: "m[k].a"}},
			wantPruned: `{m: {k: {}, i: {b: 2}, l: {}}}`,
		},
		"only one value": {
			fields:     Fields{{Path: "l[].bus", Value: "usb", Why: "no usb"}, {Path: "bus", Value: "usb"}},
			in:         `{bus: sata, l: [{bus: virtio}, {bus: usb}, {}]}`,
			want:       Fields{{Path: "l[1].bus", Value: "usb", Why: "no usb"}},
			wantPruned: `{bus: sata, l: [{bus: virtio}, {}, {}]}`,
		},
		"objects with nothing else go too, but empty ones and the whole stay": {
			fields:     Fields{{Path: "a.b.c"}, {Path: "d.e.f"}},
			in:         `{a: {b: {c: 1}}, d: {e: {}}}`,
			want:       Fields{{Path: "a.b.c"}},
			wantPruned: `{d: {e: {}}}`,
		},
		"a wrong type is another's matter": {
			fields:     Fields{{Path: "a.b"}, {Path: "l[].b"}, {Path: "m{}.b"}, {Path: "o[].b"}, {Path: "s", Value: "s"}},
			in:         `{a: 1, l: {b: 1}, m: [{b: 1}], o: [1, null], s: {s: s}}`,
			wantPruned: `{a: 1, l: {b: 1}, m: [{b: 1}], o: [1, null], s: {s: s}}`,
		},
		"no path is the whole object": {
			fields:     Fields{{Why: "no kind"}},
			in:         `{a: 1}`,
			want:       Fields{{Why: "no kind"}},
			wantPruned: `{a: 1}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := object(t, tt.in)
			require.Equal(t, tt.want, tt.fields.In(o))
			require.Equal(t, object(t, tt.in), o, "looking changes nothing")
			tt.fields.Prune(o)
			require.Equal(t, object(t, tt.wantPruned), o)
		})
	}
}

func TestALineSaysWhatAndWhy(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]Field{
		"spec.a: not served yet: no a":                        {Path: "spec.a", Why: "no a"},
		"spec.a: not served: use b":                           {Path: "spec.a", Why: "use b", Refused: true},
		`spec.a: the value "usb" is not served yet: no usb`:   {Path: "spec.a", Value: "usb", Why: "no usb"},
		"the kind is not served yet: no controller starts it": {Why: "no controller starts it"},
	} {
		require.Equal(t, want, f.String())
	}
}

func TestTheTableIsNotTheCallers(t *testing.T) {
	t.Parallel()
	Unserved("VirtualMachine")[0].Why = "changed"
	require.NotEqual(t, "changed", Unserved("VirtualMachine")[0].Why)
	require.Empty(t, Unserved("Pod"))
}
