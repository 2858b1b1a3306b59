package effect

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/served"
)

// Object is a generated object, right or wrong.
type Object struct {
	// Name says what was done to which VMI.
	Name string
	Tree map[string]any
}

// Objects are objects of the served kinds: each VMI of testdata, as it is and in the
// template of the other kinds, and with something done to it at each place that the
// schemas in manifests have: values of the right type and of others, removals, duplicates,
// fields that are not served and fields that are not known. The rest have two or three of
// these at once. most is their number, which is filled by chance; 0 stands for all, with
// one pair for each. root is the folder of the module. The same seed gives the same objects.
func Objects(root string, seed uint64, most int) ([]Object, error) {
	g := generator{Rand: rand.New(rand.NewPCG(seed, 1)), schemas: map[string]tree{}}
	if err := g.read(root); err != nil {
		return nil, err
	}
	all := g.changes()
	var out []Object
	for _, b := range g.bases {
		out = append(out, Object{b.name, b.tree})
	}
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	pairs := len(all)
	if most > 0 {
		all = all[:min(len(all), max(0, most-len(out))*3/4)]
		pairs = max(0, most-len(out)-len(all))
	}
	for _, c := range all {
		out = append(out, Object{c.String(), c.of.changed(c)})
	}
	for range pairs {
		c := all[g.IntN(len(all))]
		others := []change{c}
		for range 1 + g.IntN(2) {
			if o := all[g.IntN(len(all))]; o.of == c.of {
				others = append(others, o)
			} else if same := g.of[c.of]; len(same) > 0 {
				others = append(others, same[g.IntN(len(same))])
			}
		}
		var names []string
		for _, o := range others {
			names = append(names, o.String())
		}
		out = append(out, Object{strings.Join(names, " and "), c.of.changed(others...)})
	}
	return out, nil
}

// tree is a schema or an object.
type tree = map[string]any

// base is an object that others are made of.
type base struct {
	name, kind string
	tree       tree
}

// change is one that is made of an object.
type change struct {
	of    *base
	at    place
	value any
	// append says that the value is one more element of the list.
	append bool
}

func (c change) String() string {
	how := "="
	if c.append {
		how = "+="
	}
	return fmt.Sprintf("%s %v %s %.80s", c.of.name, c.at, how, fmt.Sprintf("%#v", c.value))
}

// changed is the object with the changes, as far as there is still a place for each.
func (b *base) changed(all ...change) (out tree) {
	out = runtime.DeepCopyJSON(b.tree)
	for _, c := range all {
		func() {
			defer func() { _ = recover() }() // an earlier change took the place
			value := runtime.DeepCopyJSONValue(c.value)
			if c.append {
				list, _ := c.at.get(out).([]any)
				value = append(slices.Clone(list), value)
			}
			if value == null {
				out = c.at.put(out, nil)
				return
			}
			out = c.at.set(out, value)
		}()
	}
	return out
}

// null is a value that is there and null; nil takes a value out.
const null = "\x00null"

// put is a copy of the tree in which the value is there even if it is null.
func (p place) put(t tree, value any) tree {
	out := p.set(t, "x")
	switch at := p[:len(p)-1].get(out).(type) {
	case map[string]any:
		at[p[len(p)-1].(string)] = value
	case []any:
		at[p[len(p)-1].(int)] = value
	}
	return out
}

type generator struct {
	*rand.Rand
	schemas map[string]tree
	bases   []*base
	of      map[*base][]change
}

// read reads the schemas and the VMIs, and makes objects of the other kinds of these.
func (g *generator) read(root string) error {
	for _, kind := range []string{"VirtualMachineInstance", "VirtualMachine", "VirtualMachineInstanceReplicaSet"} {
		data, err := os.ReadFile(filepath.Join(root, "manifests/crds/kubevirt.io_"+strings.ToLower(kind)+"s.yaml"))
		if err != nil {
			return err
		}
		var d tree
		if err := yaml.Unmarshal(data, &d); err != nil {
			return err
		}
		version := place{"spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec"}.get(d)
		g.schemas[kind] = version.(tree)
	}
	files, err := filepath.Glob(filepath.Join(root, "internal/effect/testdata/*.yaml"))
	if err != nil {
		return err
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		var t tree
		if err := yaml.Unmarshal(data, &t); err != nil {
			return err
		}
		name := filepath.Base(f)
		t["metadata"] = tree{"name": "generated"}
		template := tree{"metadata": tree{"labels": tree{"app": "a"}}, "spec": t["spec"]}
		g.bases = append(g.bases, &base{name, vmi.VirtualMachineInstances.Kind, t},
			&base{"a VM of " + name, vmi.VirtualMachines.Kind, runtime.DeepCopyJSON(tree{
				"apiVersion": "kubevirt.io/v1", "kind": vmi.VirtualMachines.Kind, "metadata": tree{"name": "generated"},
				"spec": tree{"runStrategy": "Always", "template": template},
			})},
			&base{"a set of " + name, vmi.VirtualMachineInstanceReplicaSets.Kind, runtime.DeepCopyJSON(tree{
				"apiVersion": "kubevirt.io/v1", "kind": vmi.VirtualMachineInstanceReplicaSets.Kind, "metadata": tree{"name": "generated"},
				"spec": tree{"replicas": int64(1), "selector": tree{"matchLabels": tree{"app": "a"}}, "template": template},
			})})
	}
	return nil
}

// changes are all single changes of all objects. Of what is in a template only a part is
// changed where it is a template's.
func (g *generator) changes() []change {
	var out []change
	g.of = map[*base][]change{}
	for _, b := range g.bases {
		w := walker{of: b}
		w.value(place{"spec"}, g.schemas[b.kind], b.tree["spec"])
		w.metadata()
		w.unserved(b.kind)
		if b.kind != vmi.VirtualMachineInstances.Kind {
			g.Shuffle(len(w.found), func(i, j int) { w.found[i], w.found[j] = w.found[j], w.found[i] })
			w.found = w.found[:len(w.found)/10]
		}
		g.of[b] = w.found
		out = append(out, w.found...)
	}
	return out
}

// walker collects the changes of an object.
type walker struct {
	of    *base
	found []change
}

func (w *walker) set(at place, values ...any) {
	for _, v := range values {
		w.found = append(w.found, change{of: w.of, at: slices.Clone(at), value: v})
	}
}

// value changes a value that is there, and what is below it.
func (w *walker) value(at place, s tree, v any) {
	w.set(at, nil, null)
	w.set(at, valuesOf(s)...)
	switch v := v.(type) {
	case map[string]any:
		w.set(append(slices.Clip(at), "notKnown"), int64(1))
		properties, _ := s["properties"].(tree)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			below, here := properties[name].(tree), append(slices.Clip(at), name)
			if now, ok := v[name]; ok {
				w.value(here, below, now)
				continue
			}
			w.set(here, valuesOf(below)...)
		}
		if below, ok := s["additionalProperties"].(tree); ok {
			for name, now := range v {
				w.value(append(slices.Clip(at), name), below, now)
			}
		}
	case []any:
		items, _ := s["items"].(tree)
		for i := range v {
			w.value(append(slices.Clip(at), i), items, v[i])
			w.found = append(w.found, change{w.of, slices.Clone(at), v[i], true})
		}
		for _, more := range valuesOf(items) {
			w.found = append(w.found, change{w.of, slices.Clone(at), more, true})
		}
	}
}

// texts are values for all texts, of which some are right somewhere.
var texts = []any{
	"", "a", "A b", "../x", strings.Repeat("x", 64), strings.Repeat("x", 300), "é", "0", "a_b", "x.y", "/a/b", "/", "YQ==", "a,b", "true", "root",
	"0.0.0.0/0", "10.10.010.0/24", "127.0.0.0/8", "224.0.0.0/24", "169.254.0.0/16", "10.1.2.3/30", "fd00::/64", "fe80::/64", "ff02::/64", "::1/120",
	"10.0.0.1", "fd00::1", "0000:81:11.1", "0000:02:00.0", "0000:00:0a.0", "0000:00:1f.2", "0001:00:02.0", "0000:00:02.7",
	"02:00:00:00:00:01", "03:00:00:00:00:01", "3Mi", "1Gi", "kubevirt.io/x", "example.com/gpu", "Sometimes", "amd64", "arm64", "virtio", "sata", "q35", "pc",
}

var (
	counts = []any{int64(-1), int64(0), int64(1), int64(2), int64(3), int64(16), int64(255), int64(256),
		int64(65535), int64(65536), int64(1<<31 - 1), int64(1 << 31), int64(1 << 40)}
	quantities = []any{"0", "-3", "1", "500m", "1Mi", "3Mi", "64Mi", "256Mi", "1Gi", "1Ei", "900Ei", "3T", int64(1), "x", "1e30"}
	ports      = []any{int64(0), int64(1), int64(80), int64(65536), int64(-1), "http", "", "a b"}
)

// valuesOf are values for a schema: some that it has, some that it has not.
func valuesOf(s tree) []any {
	if all, ok := s["enum"].([]any); ok {
		return append(slices.Clone(all), "", "Sometimes", int64(3))
	}
	switch {
	case s["x-kubernetes-int-or-string"] == true && s["pattern"] != nil:
		return quantities
	case s["x-kubernetes-int-or-string"] == true:
		return ports
	}
	switch s["type"] {
	case "string":
		return append(slices.Clone(texts), int64(3), tree{})
	case "integer", "number":
		return append(slices.Clone(counts), "x")
	case "boolean":
		return []any{true, false, "x"}
	case "array":
		items, _ := s["items"].(tree)
		out := []any{[]any{}, []any{nil}, "x"}
		for _, v := range valuesOf(items) {
			out = append(out, []any{v})
		}
		if full := filled(items, 0); full != nil {
			out = append(out, []any{full}, []any{full, full})
		}
		return out
	}
	below, isMap := s["additionalProperties"].(tree)
	if isMap {
		out := []any{tree{}, "x"}
		for _, key := range []string{"a", "bad key!", "cpu", "memory", "hugepages-2Mi", "kubernetes.io/arch", "devices.kubevirt.io/kvm"} {
			for _, v := range valuesOf(below) {
				out = append(out, tree{key: v})
			}
		}
		return out
	}
	out := []any{tree{}, "x"}
	properties, _ := s["properties"].(tree)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if v := filled(properties[name].(tree), 1); v != nil {
			out = append(out, tree{name: v})
		}
	}
	return append(out, filled(s, 0))
}

// filled is a value in which all fields are set, as right as a schema can say.
func filled(s tree, depth int) any {
	if all, ok := s["enum"].([]any); ok {
		return all[0]
	}
	if s["x-kubernetes-int-or-string"] == true {
		return "1"
	}
	switch s["type"] {
	case "string":
		return "a"
	case "integer", "number":
		return int64(1)
	case "boolean":
		return true
	case "array":
		if items, ok := s["items"].(tree); ok && depth < 4 {
			return []any{filled(items, depth+1)}
		}
		return []any{}
	}
	if below, ok := s["additionalProperties"].(tree); ok {
		return tree{"a": filled(below, depth+1)}
	}
	out := tree{}
	properties, _ := s["properties"].(tree)
	required, _ := s["required"].([]any)
	for name, below := range properties {
		if below, _ := below.(tree); depth < 2 || slices.Contains(required, any(name)) {
			out[name] = filled(below, depth+1)
		}
	}
	return out
}

// metadata changes names, labels and annotations, and those of the template.
func (w *walker) metadata() {
	at := []place{{"metadata"}}
	if w.of.kind != vmi.VirtualMachineInstances.Kind {
		at = append(at, place{"spec", "template", "metadata"})
	} else {
		w.set(place{"metadata", "name"}, "", "A", "a.b", "a_b", strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 254), nil)
	}
	for _, p := range at {
		for _, key := range append(vmi.ReservedLabels(), "a", "bad key!", "kubevirt.io/os", "kubevirt.io/size", "kubevirt.io", "kubevirt.io/vm") {
			for _, v := range []any{"", "a", "bad value!", "true", int64(1)} {
				w.set(append(slices.Clip(p), "labels"), tree{key: v})
			}
		}
		for _, m := range append(served.Marks(), served.Mark{Key: "a"}, served.Mark{Key: "bad key!"}) {
			key, kind := m.Key, "annotations"
			if m.Label {
				kind = "labels"
			}
			for _, v := range []any{"", "a", "true", "bad value!", "[]", "-1", int64(1)} {
				w.set(append(slices.Clip(p), kind), tree{key: v})
			}
		}
	}
}

// unserved sets fields and values that are not served.
func (w *walker) unserved(kind string) {
	for _, f := range slices.Concat(served.Unserved(kind), served.Untyped(kind)) {
		if !strings.HasPrefix(f.Path, "spec.") {
			continue
		}
		for _, p := range places(w.of.tree, f.Path) {
			if f.Value != "" {
				w.set(p, f.Value)
				continue
			}
			w.set(p, tree{}, true, "a", int64(1), []any{tree{}})
		}
	}
}
