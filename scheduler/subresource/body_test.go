package subresource

import (
	"bytes"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/podvisor/podvisor/internal/vmi/verb"
)

// decided is what the verb answers to a request with the body, without objects.
func decided(s *Server, v verb.Verb, body []byte) error {
	r := &request{Request: httptest.NewRequest("PUT", "/", bytes.NewReader(body)), w: httptest.NewRecorder(), verb: v}
	b, leave, err := s.body(r.Context(), r)
	if err != nil {
		return err
	}
	defer leave()
	_, err = v.Decide(verb.Observed{Body: b})
	return err
}

// found is the row of a verb.
func found(t testing.TB, resource, subresource string) verb.Verb {
	v, ok := verb.Find(resource, subresource)
	require.True(t, ok)
	return v
}

func TestNoMoreOfABodyIsReadThanTheVerbSays(t *testing.T) {
	s := &Server{large: make(chan struct{}, 1)}
	require.ErrorContains(t, decided(s, found(t, verb.VMs, "stop"), make([]byte, verb.Options+1)), "Can not read Request body, error:")
	require.ErrorContains(t, decided(s, found(t, verb.Expand, ""), make([]byte, verb.Object+1)), "Can not read Request body, error:")
	require.True(t, apierrors.IsNotFound(decided(s, found(t, verb.VMIs, "reset"), make([]byte, verb.Object+1))), "it has no body")
	require.Empty(t, s.large)
}

// One string of 30 KiB that 9,000 aliases name, in a body of 57 KiB, took 1.5 GiB and
// minutes to decode.
func TestAttackABodyStandsForNoMoreThanItIs(t *testing.T) {
	s := &Server{large: make(chan struct{}, 1)}
	aliases := func(n int) string {
		return "a: &a " + strings.Repeat("x", n/2) + "\nb: [" + strings.Repeat("*a,", n/6) + "]"
	}
	for name, body := range map[string]string{
		"aliases":         aliases(verb.Options),
		"many aliases":    aliases(56 << 10),
		"nested lists":    strings.Repeat("[", verb.Options),
		"nested objects":  strings.Repeat(`{"a":`, verb.Options/5),
		"empty lists":     "a: [" + strings.Repeat("[],", verb.Options/3-2) + "]",
		"a million lists": `{"spec":{"template":{"spec":{"volumes":[` + strings.Repeat("{},", 340_000) + "{}]}}}}",
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_ = decided(s, found(t, verb.VMs, "stop"), []byte(body))
			require.Equal(t, int32(400), statusOf(decided(s, found(t, verb.Expand, ""), []byte(body))).Code)
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
		for _, v := range verb.All() {
			if v.Body == verb.NoBody {
				continue
			}
			if err := decided(s, v, b); err != nil {
				require.Contains(t, []int32{400, 404}, statusOf(err).Code, v.Path())
			}
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
		if r.resource != verb.Expand {
			again = append(again, r.name, r.subresource)
		}
		require.Equal(t, strings.TrimPrefix(path, "/"), strings.Join(append(again, r.rest...), "/"))
		a := r.attributes("get")
		require.Equal(t, []string{r.version, r.namespace, r.resource, r.name, r.subresource}, []string{a.Version, a.Namespace, a.Resource, a.Name, a.Subresource})
		require.Equal(t, r.resource == verb.Expand, r.name == "")
		require.False(t, slices.Contains(r.rest, ""))
	})
}
