package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/internal/vmi/quantity"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/kinds"
)

// store creates an object as it is written. It returns what is stored, or the
// refusal.
func store(t *testing.T, path, object string) ([]byte, error) {
	r := world.kube.CoreV1().RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").Body([]byte(object)).Do(t.Context())
	if err := r.Error(); err != nil {
		return nil, err
	}
	return r.Raw()
}

// expensive are quantities that take minutes or gigabytes to decode, to compare or
// to write, and some that no Go program reads.
var expensive = []string{
	`"1e999999999"`, `"-1e999999999"`, `"1e-999999999"`, `"12345678901234567890e999999999"`, `"` + strings.Repeat("9", 1_000_000) + `"`,
	`1e300`, `1152921504606846977`, `-9223372036854775808`, `"1e1.5"`, `" 1Gi"`, `"0x10"`, `"NaN"`, `"1e"`,
}

func TestAQuantityThatTakesLongIsRefusedByTheSchema(t *testing.T) {
	t.Parallel()
	refuse := func(t *testing.T, s space) {
		for _, value := range expensive {
			for path, spec := range map[string]string{
				"spec.domain.memory.guest":              `{"domain":{"memory":{"guest":%s}}}`,
				"spec.domain.resources.requests.memory": `{"domain":{"memory":{"guest":"64Mi"},"resources":{"requests":{"memory":%s}}}}`,
				"spec.volumes[0].emptyDisk.capacity":    `{"domain":{"memory":{"guest":"64Mi"}},"volumes":[{"name":"a","emptyDisk":{"capacity":%s}}]}`,
			} {
				start := time.Now()
				_, err := store(t, "/apis/kubevirt.io/v1/namespaces/"+s.name+"/virtualmachineinstances",
					`{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstance","metadata":{"name":"vm"},"spec":`+fmt.Sprintf(spec, value)+`}`)
				require.ErrorContains(t, err, path, "%.40s", value)
				// To decode one takes minutes. The other tests keep the API server busy for seconds.
				require.Less(t, time.Since(start), time.Minute, "%.40s", value)
			}
		}
	}
	t.Run("while no webhook answers", func(t *testing.T) { t.Parallel(); refuse(t, newSpace(t)) })
	t.Run("and before the webhooks decode it", func(t *testing.T) {
		t.Parallel()
		w := newWebhooks(t, nil)
		w.serve()
		before := w.reviews.Load()
		refuse(t, w.space)
		require.Greater(t, w.reviews.Load(), before)
	})
}

func TestMemoryThatCannotBeAddedUpIsRefusedWithAllOtherFaults(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, nil)
	w.serve()
	v := guest("vm")
	v.Spec.Domain.Memory = &vmi.Memory{Guest: new(resource.MustParse("2Ei"))}
	v.Spec.Hostname = "A"
	_, err := w.vmis.Create(t.Context(), v, metav1.CreateOptions{})
	require.ErrorContains(t, err, `spec.domain.memory.guest: Invalid value: "2Ei": must be at most 1Ei`)
	require.ErrorContains(t, err, "spec.hostname: Invalid value")
}

func TestAnIntegerThatTheTypeDoesNotHoldIsRefusedByTheSchema(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	for path, object := range map[string]string{
		"spec.domain.cpu.cores": `{"kind":"VirtualMachineInstance","spec":{"domain":{"cpu":{"cores":-1}}}}`,
		"spec.configuration.developerConfiguration.logVerbosity.virtController":    `{"kind":"KubeVirt","spec":{"configuration":{"developerConfiguration":{"logVerbosity":{"virtController":-1}}}}}`,
		"spec.configuration.developerConfiguration.logVerbosity.nodeVerbosity.n1":  `{"kind":"KubeVirt","spec":{"configuration":{"developerConfiguration":{"logVerbosity":{"nodeVerbosity":{"n1":-1}}}}}}`,
		"spec.configuration.handlerConfiguration.restClient.rateLimiter.tokenBuck": `{"kind":"KubeVirt","spec":{"configuration":{"handlerConfiguration":{"restClient":{"rateLimiter":{"tokenBucketRateLimiter":{"qps":1e300,"burst":1}}}}}}}`,
	} {
		var o map[string]any
		require.NoError(t, json.Unmarshal([]byte(object), &o))
		o["apiVersion"], o["metadata"] = "kubevirt.io/v1", map[string]any{"name": "a"}
		text, err := json.Marshal(o)
		require.NoError(t, err)
		_, err = store(t, "/apis/kubevirt.io/v1/namespaces/"+s.name+"/"+strings.ToLower(o["kind"].(string))+"s", string(text))
		require.ErrorContains(t, err, path)
	}
}

// sweepGroup is the API group of the kinds of the test below, which nothing else
// uses.
const sweepGroup = "sweep.example.io"

// Every kind with all its typed fields is served in a group of its own, with nothing
// left of its schema but types, formats, limits and patterns. An extreme value of
// each leaf is stored or refused, each in an object of its own, and what is stored
// must be decoded by the Go types.
func TestWhatIsStoredIsWhatTheTypesHold(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	dir := t.TempDir()
	gen := exec.CommandContext(t.Context(), "go", "run", "./internal/apigen", "-whole", dir)
	gen.Dir = "../.."
	out, err := gen.CombinedOutput()
	require.NoError(t, err, string(out))
	w := sweep{space: s}
	for _, d := range kinds.Definitions() {
		text, err := os.ReadFile(filepath.Join(dir, d.Group+"_"+d.Plural+".yaml"))
		require.NoError(t, err)
		var crd map[string]any
		require.NoError(t, yaml.Unmarshal(text, &crd))
		schema := unruled(crd, d)
		text, err = yaml.Marshal(crd)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, d.Group+"_"+d.Plural+".yaml"), text, 0o600))
		w.leaves(d, nil, schema, reflect.TypeOf(d.New()), func(v string) string { return v })
	}
	t.Cleanup(func() {
		for _, d := range kinds.Definitions() {
			_ = world.kube.CoreV1().RESTClient().Delete().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + d.Plural + "." + sweepGroup).Do(context.Background()).Error()
		}
	})
	said, err := kubectl(t, "", "create", "-f", dir)
	require.NoError(t, err, said)
	awaitEstablished(t, func() (string, error) { return kubectl(t, "", "get", "-o", "json", "-f", dir) })
	w.run()
}

// unruled leaves of the definition what says which values there are, and returns the
// schema.
func unruled(crd map[string]any, d vmi.Definition) map[string]any {
	crd["metadata"] = map[string]any{"name": d.Plural + "." + sweepGroup}
	spec := crd["spec"].(map[string]any)
	spec["group"], spec["scope"] = sweepGroup, "Namespaced"
	names := spec["names"].(map[string]any)
	delete(names, "shortNames")
	delete(names, "categories")
	version := spec["versions"].([]any)[0].(map[string]any)
	for _, name := range []string{"subresources", "selectableFields", "additionalPrinterColumns"} {
		delete(version, name)
	}
	schema := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	strip(schema)
	return schema
}

func strip(s map[string]any) {
	for _, name := range []string{"required", "enum", "default", "x-kubernetes-validations", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "minItems", "minLength", "minProperties"} {
		delete(s, name)
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if below, ok := s[name].(map[string]any); ok {
			strip(below)
		}
	}
	properties, _ := s["properties"].(map[string]any)
	for name, below := range properties {
		if isFormer(below.(map[string]any)) {
			delete(properties, name)
			continue
		}
		strip(below.(map[string]any))
	}
}

// isFormer says that the schema is of a field of before v1, which the types do not have
// and no object may have.
func isFormer(s map[string]any) bool {
	rules, _ := s["x-kubernetes-validations"].([]any)
	return slices.ContainsFunc(rules, func(r any) bool { return r.(map[string]any)["rule"] == "false" })
}

// try is one value of one leaf of one kind, in an object that has nothing else.
type try struct {
	kind         vmi.Definition
	path, object string
	// verdict says what must happen.
	verdict verdict
}

type verdict string

const (
	stored  verdict = "stored"
	refused verdict = "refused"
	// either says that what is stored must be decoded.
	either verdict = "either"
)

// sweep collects the tries and makes them.
type sweep struct {
	space
	tries []try
}

// leaves collects the tries of all leaves of the schema and its type. around puts a
// value into an object.
func (w *sweep) leaves(d vmi.Definition, path []string, s map[string]any, t reflect.Type, around func(string) string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if values := extremes(s, t); values != nil {
		for value, is := range values {
			w.tries = append(w.tries, try{d, strings.Join(path, "."), around(value), is})
		}
		return
	}
	switch t.Kind() {
	case reflect.Slice:
		w.leaves(d, append(path, "[]"), s["items"].(map[string]any), t.Elem(), func(v string) string { return around("[" + v + "]") })
	case reflect.Map:
		w.leaves(d, append(path, "{}"), s["additionalProperties"].(map[string]any), t.Elem(), func(v string) string { return around(`{"k":` + v + `}`) })
	case reflect.Struct:
		properties, _ := s["properties"].(map[string]any)
		fields := map[string]reflect.Type{}
		fieldsOf(t, fields)
		for name, below := range properties {
			// The metadata of the object is the API server's, and the spec of a template
			// is that of a VMI, whose schema is made in the same way.
			if len(path) == 0 && (name == "metadata" || name == "kind" || name == "apiVersion") || name == "spec" && len(path) > 1 && path[len(path)-1] == "template" {
				continue
			}
			require.NotNil(w.t, fields[name], "%s: %s", path, name)
			w.leaves(d, append(path[:len(path):len(path)], name), below.(map[string]any), fields[name], func(v string) string { return around(`{"` + name + `":` + v + `}`) })
		}
	}
}

// fieldsOf collects the fields of a struct by their names in JSON.
func fieldsOf(t reflect.Type, into map[string]reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			into[name] = f.Type
		} else if f.Anonymous {
			fieldsOf(f.Type, into)
		}
	}
}

// integers are the smallest and the largest value of the integers of Go, and those
// beyond. The API server has none above those of int64.
var integers = map[reflect.Kind][4]string{
	reflect.Int: {"-9223372036854775809", "-9223372036854775808", "9223372036854775807", "9223372036854775808"}, reflect.Int64: {"-9223372036854775809", "-9223372036854775808", "9223372036854775807", "9223372036854775808"},
	reflect.Uint: {"-1", "0", "9223372036854775807", "9223372036854775808"}, reflect.Uint64: {"-1", "0", "9223372036854775807", "9223372036854775808"},
	reflect.Int32: {"-2147483649", "-2147483648", "2147483647", "2147483648"}, reflect.Uint32: {"-1", "0", "4294967295", "4294967296"},
}

// extremes are values of a leaf and what must happen to them, or nil if t is no leaf
// of numbers, quantities or times.
func extremes(s map[string]any, t reflect.Type) map[string]verdict {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		out := map[string]verdict{`"1Ei"`: stored, `"-1e-19"`: stored, `"12345678901234567890.123456789Ei"`: stored, `1152921504606846976`: stored, `"500m"`: stored}
		for _, value := range expensive {
			out[value] = refused
		}
		return out
	case reflect.TypeFor[intstr.IntOrString]():
		return map[string]verdict{"-2147483649": refused, "2147483647": stored, "2147483648": refused, `"http"`: stored, "1.5": refused, "true": refused}
	case reflect.TypeFor[metav1.Time]():
		return map[string]verdict{
			`"2026-02-28T23:59:59Z"`: stored, `"2026-02-28T23:59:59.123456789+14:00"`: stored, `null`: either, `""`: refused, `"2026-02-30T00:00:00Z"`: refused, `"2026-02-28T23:59:59"`: refused,
			`"2026-02-28t23:59:59z"`: refused, `"2026-02-28T23:59:60Z"`: refused, `"2026-02-28T23:59:59+99:99"`: refused, `"2026-02-28T23:59:59ZTx"`: refused, `"2026-02-28T23:59:59,5Z"`: refused, `7`: refused,
		}
	}
	if t == reflect.TypeFor[metav1.Duration]() {
		return map[string]verdict{
			`"1m30.5s"`: stored, `"0s"`: stored, `"999999h999999h9h"`: stored, `"999999h999999h999999h"`: refused, `""`: refused, `"1"`: refused, `"-1s"`: refused, `"1d"`: refused, `"1 s"`: refused, `7`: refused,
		}
	}
	if limits, ok := integers[t.Kind()]; ok {
		out := map[string]verdict{limits[0]: refused, limits[1]: verdictOn(s, limits[1]), limits[2]: verdictOn(s, limits[2]), limits[3]: refused, "1.5": refused, "1e30": refused, "20.0": either, "2e1": either, `"20"`: refused}
		return out
	}
	if t.Kind() == reflect.Float32 {
		return map[string]verdict{"1e300": refused, "-1e300": refused, "3.5e38": refused, "3.4e38": stored, "1.5": stored}
	}
	return nil
}

// within says whether the value is within limits of the schema that are narrower
// than those of the type.
func verdictOn(s map[string]any, value string) verdict {
	n, err := strconv.ParseFloat(value, 64)
	least, hasLeast := s["minimum"].(float64)
	most, hasMost := s["maximum"].(float64)
	if err != nil || hasLeast && n < least || hasMost && n > most {
		return refused
	}
	return stored
}

// run makes the tries, several at once.
func (w *sweep) run() {
	require.Greater(w.t, len(w.tries), 500)
	start, slowest := time.Now(), atomic.Int64{}
	var wg sync.WaitGroup
	counts := [2]atomic.Int64{}
	queue := make(chan try)
	for range 8 {
		wg.Go(func() {
			for y := range queue {
				kept, took, err := w.make(y)
				if err != nil {
					w.t.Errorf("%s %s %.200s: %v", y.kind.Kind, y.path, y.object, err)
				}
				if kept {
					counts[0].Add(1)
				} else {
					counts[1].Add(1)
				}
				slowest.Store(max(slowest.Load(), int64(took)))
			}
		})
	}
	for _, y := range w.tries {
		queue <- y
	}
	close(queue)
	wg.Wait()
	w.t.Logf("%d objects stored and decoded, %d refused, in %v; the slowest was decoded in %v", counts[0].Load(), counts[1].Load(), time.Since(start), time.Duration(slowest.Load()))
}

// make makes one try. It says whether the object was stored and how long it took to
// decode it. The error says that something else happened than what must.
func (w *sweep) make(y try) (kept bool, took time.Duration, err error) {
	object := fmt.Sprintf(`{"apiVersion":"%s/%s","kind":%q,"metadata":{"generateName":"x-"},%s`, sweepGroup, y.kind.Version, y.kind.Kind, strings.TrimPrefix(y.object, "{"))
	data, err := store(w.t, "/apis/"+sweepGroup+"/"+y.kind.Version+"/namespaces/"+w.name+"/"+y.kind.Plural, object)
	refusal := apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
	switch {
	case err != nil && y.verdict == stored:
		return false, 0, fmt.Errorf("it must be stored: %w", err)
	case refusal:
		return false, 0, nil
	case err != nil:
		return false, 0, err
	case y.verdict == refused:
		return true, 0, fmt.Errorf("it must be refused and is stored")
	}
	took = testenv.ProcessorTime(w.t, func() {
		o := y.kind.New()
		if l := quantity.FaultsIn(o, data); len(l) > 0 {
			err = l.ToAggregate()
			return
		}
		err = json.Unmarshal(data, o)
	})
	if err == nil && took > time.Second {
		err = fmt.Errorf("a processor worked %v to decode it", took)
	}
	return true, took, err
}
