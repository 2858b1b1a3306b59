package admission

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/served"
)

// part has a default for each of its fields.
type part struct {
	Name  string          `json:"name,omitempty"`
	Now   string          `json:"now,omitempty"`
	Later string          `json:"later,omitempty"`
	Part  *part           `json:"part,omitempty"`
	Parts []part          `json:"parts,omitempty"`
	Named map[string]part `json:"named,omitempty"`
}

func (p part) done() part {
	p.Now, p.Later = "now", "later"
	return p
}

// A field with a default is completed as soon as it is served: nothing but the
// table says which are.
func TestTheTableDecidesWhatIsCompleted(t *testing.T) {
	t.Parallel()
	complete := func(v *part) *part {
		d := v.done()
		if d.Part == nil {
			d.Part = &part{}
		}
		d.Part = new(d.Part.done())
		if d.Parts == nil {
			d.Parts = []part{{Name: "a"}}
		}
		d.Parts = slices.Clone(d.Parts)
		for i := range d.Parts {
			d.Parts[i] = d.Parts[i].done()
		}
		d.Named = map[string]part{"k": part{}.done()}
		return &d
	}
	for name, tt := range map[string]struct {
		unserved  served.Fields
		raw, want string
	}{
		"all is served": {
			raw:  `{}`,
			want: `{"now":"now","later":"later","part":{"now":"now","later":"later"},"parts":[{"name":"a","now":"now","later":"later"}],"named":{"k":{"now":"now","later":"later"}}}`,
		},
		"fields on every level are not": {
			unserved: served.Fields{{Path: "later"}, {Path: "part.later"}, {Path: "parts[].later"}, {Path: "named{}.later"}},
			raw:      `{}`,
			want:     `{"now":"now","part":{"now":"now"},"parts":[{"name":"a","now":"now"}],"named":{"k":{"now":"now"}}}`,
		},
		"a path stands for all below it": {
			unserved: served.Fields{{Path: "later"}, {Path: "now"}, {Path: "part"}, {Path: "parts"}, {Path: "named"}},
			raw:      `{}`,
			want:     `{}`,
		},
		"an object with nothing served in it is not added": {
			unserved: served.Fields{{Path: "later"}, {Path: "part.now"}, {Path: "part.later"}, {Path: "part.name"}, {Path: "parts"}, {Path: "named"}},
			raw:      `{}`,
			want:     `{"now":"now"}`,
		},
		"a value that is not served is not added, others are": {
			unserved: served.Fields{{Path: "now", Value: "now"}, {Path: "later", Value: "now"}, {Path: "part"}, {Path: "parts"}, {Path: "named"}},
			raw:      `{}`,
			want:     `{"later":"later"}`,
		},
		"what was written stays, served or not, and so does a list": {
			unserved: served.Fields{{Path: "part.later"}, {Path: "parts[].later"}, {Path: "named"}},
			raw:      `{"later":"never","part":{"later":"never","name":""},"parts":[{"name":"b"}]}`,
			want:     `{"now":"now","later":"never","part":{"now":"now","later":"never","name":""},"parts":[{"name":"b"}]}`,
		},
		"a list without elements is a list, and null is nothing": {
			unserved: served.Fields{{Path: "part"}, {Path: "named"}, {Path: "later"}},
			raw:      `{"parts":[],"now":null}`,
			want:     `{"parts":[],"now":"now"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var v part
			require.NoError(t, json.Unmarshal([]byte(tt.raw), &v))
			raw, err := tree([]byte(tt.raw))
			require.NoError(t, err)
			got, err := tt.unserved.Filled(raw, &v, complete(&v))
			require.NoError(t, err)
			again, err := tree([]byte(tt.raw))
			require.NoError(t, err)
			require.Equal(t, again, raw, "what was written is not changed")
			b, err := json.Marshal(got)
			require.NoError(t, err)
			require.JSONEq(t, tt.want, string(b))
		})
	}
}

// sparse are specs of VMIs that leave out much, each something else.
var sparse = map[string]string{
	"all":                        `{"domain":{}}`,
	"sizes":                      `{"domain":{"resources":{"limits":{"cpu":"2","memory":"2Gi"}}}}`,
	"the shape of the CPU":       `{"domain":{"cpu":{"threads":2}}}`,
	"an empty CPU":               `{"domain":{"cpu":{}}}`,
	"disks":                      `{"domain":{"memory":{"guest":"1024Mi"}},"volumes":[{"name":"a","containerDisk":{"image":"x"}},{"name":"b","emptyDisk":{"capacity":"1Gi"}}]}`,
	"some disks":                 `{"domain":{"devices":{"disks":[{"name":"b"}]}},"volumes":[{"name":"a","containerDisk":{"image":"x"}},{"name":"b","emptyDisk":{"capacity":"1Gi"}}]}`,
	"a binding":                  `{"domain":{"devices":{"interfaces":[{"name":"n","ports":[{"port":80}]}]}},"networks":[{"name":"n","pod":{}}]}`,
	"fields that are not served": `{"domain":{"features":{"hyperv":{"synictimer":{}}},"devices":{"watchdog":{"name":"w","i6300esb":{}},"inputs":[{"name":"i"}]}},"livenessProbe":{"tcpSocket":{"port":1}}}`,
	"empty lists":                `{"domain":{"devices":{"disks":[],"interfaces":[]}},"networks":[],"volumes":[]}`,
}

// trees are a VMI as it was written, as it was decoded, completed by the library,
// and completed by the webhook.
func trees(t *testing.T, object string, p defaults.Profile) (raw, read, whole, ours map[string]any) {
	t.Helper()
	var v vmi.VirtualMachineInstance
	require.NoError(t, json.Unmarshal([]byte(object), &v))
	out := patched(t, object, askOf(t, Webhooks{Settings: func() config.Config { return config.Config{Defaults: p} }}, completionPath, object, ""))
	var err error
	for to, from := range map[*map[string]any]any{&raw: json.RawMessage(object), &read: &v, &whole: defaults.Instance(&v, p), &ours: json.RawMessage(out)} {
		*to, err = treeOf(from)
		require.NoError(t, err)
		delete(*to, "status") // a write of the VMI does not write it
	}
	return raw, read, whole, ours
}

// account requires that everything that a default set is in the answer, in the
// table of served or in a list that was written.
func account(t *testing.T, at string, raw, read, whole, ours any) {
	t.Helper()
	if list, ok := whole.([]any); ok {
		if _, written := raw.([]any); written {
			return
		}
		require.Len(t, ours, len(list), at)
		for i, e := range list {
			account(t, at+"[]", nil, nil, e, ours.([]any)[i])
		}
		return
	}
	m, ok := whole.(map[string]any)
	if !ok {
		require.Equal(t, whole, ours, at)
		return
	}
	r, _ := raw.(map[string]any)
	before, _ := read.(map[string]any)
	o, _ := ours.(map[string]any)
	for k, after := range m {
		path := strings.TrimPrefix(at+"."+k, ".")
		if (before == nil || !jsonEqual(t, before[k], after)) && !isUnserved(path) {
			account(t, path, r[k], before[k], after, o[k])
		}
	}
}

func isUnserved(path string) bool {
	return slices.ContainsFunc(served.Unserved(vmi.VirtualMachineInstances.Kind), func(f served.Field) bool { return f.Path == path && f.Value == "" })
}

func jsonEqual(t *testing.T, a, b any) bool {
	t.Helper()
	x, err := json.Marshal(a)
	require.NoError(t, err)
	y, err := json.Marshal(b)
	require.NoError(t, err)
	return string(x) == string(y)
}

func TestEveryDefaultIsStoredUnlessItIsNotServed(t *testing.T) {
	t.Parallel()
	for name, spec := range sparse {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, read, whole, ours := trees(t, written(spec), defaults.Profile{Binding: defaults.Masquerade})
			account(t, "", raw, read, whole, ours)
		})
	}
}

// A network whose interface could not be added beside it would change the VMI.
func TestWhatWouldMeanSomethingElseIsNotCompleted(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{`{"domain":{"devices":{"interfaces":[]}}}`, `{"domain":{"cpu":{"sockets":0},"resources":{"limits":{"cpu":"4"}}}}`} {
		raw, _, _, ours := trees(t, written(spec), defaults.Profile{})
		require.Equal(t, raw["spec"], ours["spec"])
		require.Equal(t, []any{vmi.Finalizer}, ours["metadata"].(map[string]any)["finalizers"])
	}
}

// Then a merge patch of the manifest changes nothing.
func TestWhatWasWrittenIsStoredAsItIs(t *testing.T) {
	t.Parallel()
	for name, spec := range sparse {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, _, _, ours := trees(t, written(spec), defaults.Profile{})
			requireWithin(t, "", raw, ours)
		})
	}
}

func requireWithin(t *testing.T, at string, written, stored any) {
	t.Helper()
	m, ok := written.(map[string]any)
	if !ok {
		require.Equal(t, written, stored, at)
		return
	}
	require.IsType(t, m, stored, at)
	for k, v := range m {
		requireWithin(t, at+"."+k, v, stored.(map[string]any)[k])
	}
}

// The API server drops nothing of what is added: package served tests its table
// against the schema.
func TestWhatIsAddedIsServed(t *testing.T) {
	t.Parallel()
	for name, spec := range sparse {
		if name == "fields that are not served" {
			continue // the API server drops them before it calls the webhook
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, _, ours := trees(t, written(spec), defaults.Profile{})
			require.Empty(t, served.Unserved(vmi.VirtualMachineInstances.Kind).In(ours))
		})
	}
}
