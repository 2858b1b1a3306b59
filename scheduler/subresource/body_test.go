package subresource

import (
	"bytes"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

// withBody is a request with the body.
func withBody(b []byte) *request {
	w := httptest.NewRecorder()
	return &request{Request: httptest.NewRequest("PUT", "/", bytes.NewReader(b)), w: w}
}

func TestOptionsAreJSONOrYAML(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       vmi.StopOptions
		fault      string
	}{
		{"nothing", " \n", vmi.StopOptions{}, ""},
		{"JSON", `{"gracePeriod": 3, "dryRun": ["All"], "other": "X"}`, vmi.StopOptions{GracePeriod: new(int64(3)), DryRun: []string{"All"}}, ""},
		{"YAML", "gracePeriod: 3\nother: X\n", vmi.StopOptions{GracePeriod: new(int64(3))}, ""},
		{"an object of YAML in braces", `{gracePeriod: 3}`, vmi.StopOptions{GracePeriod: new(int64(3))}, ""},
		{"another type", `{"gracePeriod": {}}`, vmi.StopOptions{}, "Can not unmarshal Request body to struct, error:"},
		{"neither", "a: [", vmi.StopOptions{}, "Can not unmarshal Request body to struct, error:"},
		{"an alias", "a: &a x\nb: *a", vmi.StopOptions{}, "without the characters & and *"},
		{"more than is read", `{"x": "` + strings.Repeat("x", mostOfOptions) + `"}`, vmi.StopOptions{}, "Can not read Request body, error:"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var o vmi.StopOptions
			err := withBody([]byte(tt.body)).body(&o)
			if tt.fault != "" {
				require.ErrorContains(t, err, tt.fault)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, o)
		})
	}
}

// One string of 30 KiB that 9,000 aliases name, in a body of 57 KiB, took 1.5 GiB and
// minutes to decode.
func TestAttackABodyStandsForNoMoreThanItIs(t *testing.T) {
	s := &Server{large: make(chan struct{}, 1)}
	aliases := func(n int) string {
		return "a: &a " + strings.Repeat("x", n/2) + "\nb: [" + strings.Repeat("*a,", n/6) + "]"
	}
	for name, body := range map[string]string{
		"aliases":         aliases(mostOfOptions),
		"many aliases":    aliases(56 << 10),
		"nested lists":    strings.Repeat("[", mostOfOptions),
		"nested objects":  strings.Repeat(`{"a":`, mostOfOptions/5),
		"empty lists":     "a: [" + strings.Repeat("[],", mostOfOptions/3-2) + "]",
		"a million lists": `{"spec":{"template":{"spec":{"volumes":[` + strings.Repeat("{},", 340_000) + "{}]}}}}",
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_ = withBody([]byte(body)).body(new(vmi.StopOptions))
			_, err := s.object(t.Context(), withBody([]byte(body)), vmi.VirtualMachines.Kind, new(vmi.VirtualMachine))
			require.Error(t, err)
			runtime.ReadMemStats(&after)
			require.Less(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(24), "MiB")
			require.Empty(t, s.large)
		})
	}
}

func FuzzBody(f *testing.F) {
	for _, s := range []string{"", "{}", `{"dryRun":["All"]}`, "paused: true", "unfreezeTimeout: 10s", `{"spec":{"template":{"spec":{"domain":{}}}}}`, "a: &a [*a]"} {
		f.Add([]byte(s))
	}
	s := &Server{Config: Config{}.complete(), large: make(chan struct{}, 1)}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, o := range []any{&vmi.StartOptions{}, &vmi.StopOptions{}, &vmi.RestartOptions{}, &vmi.MigrateOptions{}, &vmi.PauseOptions{}, &vmi.FreezeUnfreezeTimeout{}, &vmi.EvacuateCancelOptions{}} {
			if err := withBody(b).body(o); err != nil {
				require.Equal(t, int32(400), statusOf(err).Code)
			}
		}
		if _, err := s.expandGiven(t.Context(), withBody(b)); err != nil {
			require.Equal(t, int32(400), statusOf(err).Code)
		}
		require.Empty(t, s.large)
	})
}

// What is authorized is what is done: the path of a route, put together again, is the path.
func FuzzParse(f *testing.F) {
	for _, p := range []string{"virtualmachines/x/start", "virtualmachineinstances/x/portforward/22/tcp", "virtualmachineinstances/x/vnc/screenshot", "expand-vm-spec",
		"virtualmachineinstances/../start", "virtualmachines//start", "virtualmachineinstances/x/console/..", "pods/x/log"} {
		f.Add(root + "/v1/namespaces/a/" + p)
	}
	f.Fuzz(func(t *testing.T, path string) {
		r, ok := parse(path)
		if !ok {
			return
		}
		again := []string{root[1:], r.version, "namespaces", r.namespace, r.resource}
		if r.resource != expand {
			again = append(again, r.name, r.subresource)
		}
		require.Equal(t, strings.TrimPrefix(path, "/"), strings.Join(append(again, r.rest...), "/"))
		a := r.attributes("get")
		require.Equal(t, []string{r.version, r.namespace, r.resource, r.name, r.subresource}, []string{a.Version, a.Namespace, a.Resource, a.Name, a.Subresource})
		require.Equal(t, r.resource == expand, r.name == "")
		require.False(t, slices.Contains(r.rest, ""))
	})
}
