package fake_test

import (
	"context"
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/internal/contract"
	"github.com/podvisor/podvisor/internal/vmi/verb"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// recorder notes which verbs are called.
type recorder struct {
	http.RoundTripper
	mu     sync.Mutex
	called map[string]bool // by the paths of the verbs
}

// record returns a configuration with which calls of the server's verbs are noted.
func record(s *fake.Server) (*rest.Config, *recorder) {
	cfg := s.Config()
	r := &recorder{RoundTripper: cfg.Transport, called: map[string]bool{}}
	cfg.Transport = r
	return cfg, r
}

func (r *recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	if _, below, ok := strings.Cut(q.URL.Path, "/"+vmi.SubresourceGroup+"/v1/namespaces/default/"); ok {
		steps := strings.SplitN(below, "/", 3)
		r.mu.Lock()
		for _, v := range verb.All() {
			if v.Resource == steps[0] && v.Method == q.Method && (len(steps) < 3 || steps[2] == v.Subresource || v.Tail != "" && strings.HasPrefix(steps[2], v.Subresource+"/")) {
				r.called[v.Path()] = true
			}
		}
		r.mu.Unlock()
	}
	return r.RoundTripper.RoundTrip(q)
}

// missing are the verbs that were not called.
func (r *recorder) missing() []string {
	var out []string
	for _, v := range verb.All() {
		if !r.called[v.Path()] {
			out = append(out, v.Path())
		}
	}
	return out
}

func TestTheContractHasACaseOfEachVerb(t *testing.T) {
	cfg, calls := record(fake.New())
	c, err := client.New(cfg)
	require.NoError(t, err)
	contract.RunVerbs(t, c, "default")
	require.Empty(t, calls.missing(), "no case of internal/contract calls these verbs of the table in vmi/verb")
}

// ofVerbs are the methods of a client beside those for objects of any kind.
func ofVerbs(c reflect.Value) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	of := c.Type()
	for i := range of.NumMethod() {
		out[of.Method(i).Name] = c.Method(i)
	}
	for i := range of.NumField() {
		if f := of.Field(i); f.Anonymous && f.IsExported() {
			for n := range f.Type.NumMethod() {
				delete(out, f.Type.Method(n).Name)
			}
		}
	}
	return out
}

// call calls a method with arguments of its types, and a function that it returns too.
func call(ctx context.Context, f reflect.Value) {
	var args []reflect.Value
	for i := range f.Type().NumIn() {
		arg := reflect.Zero(f.Type().In(i))
		switch arg.Interface().(type) {
		case string:
			arg = reflect.ValueOf([]string{"a", "tcp", ":80"}[min(i, 2)])
			if i < 2 && f.Type().NumIn() < 3 {
				arg = reflect.ValueOf("a")
			}
		case *vmi.VirtualMachine:
			arg = reflect.ValueOf(vmitest.NewVM(vmi.RunAlways, vmitest.WithName("a")))
		case nil:
			arg = reflect.ValueOf(ctx)
		}
		args = append(args, arg)
	}
	for _, out := range f.Call(args) {
		if out.Kind() == reflect.Func {
			call(ctx, out)
		}
	}
}

func TestTheClientAndItsPageHaveEachVerb(t *testing.T) {
	cfg, calls := record(fake.New())
	c, err := client.New(cfg)
	require.NoError(t, err)
	page, err := os.ReadFile("../../../docs/subresources-go.md")
	require.NoError(t, err)
	row := regexp.MustCompile("(?m)^\\| of VMs \\| of VMIs \\|\n\\|---\\|---\\|\n\\| (.*) \\| (.*) \\|$").FindStringSubmatch(string(page))
	require.NotNil(t, row)
	for i, of := range []any{c.VirtualMachines("default"), c.VirtualMachineInstances("default")} {
		methods := ofVerbs(reflect.ValueOf(of))
		for _, m := range methods {
			call(t.Context(), m)
		}
		var said []string
		for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[i+1], -1) {
			said = append(said, m[1])
		}
		require.ElementsMatch(t, slices.Collect(maps.Keys(methods)), said, "docs/subresources-go.md has other methods than %T", of)
	}
	require.Empty(t, calls.missing(), "no method of vmi/client calls these verbs of the table in vmi/verb")
}
