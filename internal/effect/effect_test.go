package effect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
)

// exceptions are what the test has to know of some fields of one area of the spec.
type exceptions struct {
	// without are the served fields that have no effect, and why. One that has an
	// effect must not be here.
	without map[string]string
	// alternatives are the values of leaves whose values are limited, by their paths
	// or by the ends of them. Each must have an effect somewhere.
	alternatives map[string][]any
	// instead are leaves that take the place of others in the same object, which go.
	instead map[string][]string
	// together are names that refer to each other and are changed together.
	together map[string]string
}

// areas are the exceptions of each area, in a file of its own.
var areas = []exceptions{generalArea, platformArea, diskArea, volumeArea, firmwareArea, nodeArea, accessArea, sharingArea, networkArea}

var (
	without      = joined(func(e exceptions) map[string]string { return e.without })
	alternatives = joined(func(e exceptions) map[string][]any { return e.alternatives })
	instead      = joined(func(e exceptions) map[string][]string { return e.instead })
	together     = joined(func(e exceptions) map[string]string { return e.together })
)

func joined[V any](of func(exceptions) map[string]V) map[string]V {
	all := map[string]V{}
	for _, a := range areas {
		maps.Copy(all, of(a))
	}
	return all
}

func bases(t testing.TB) map[string]map[string]any {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	out := map[string]map[string]any{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		var tree map[string]any
		require.NoError(t, yaml.Unmarshal(data, &tree))
		out[filepath.Base(f)] = tree
	}
	return out
}

func decode(t *testing.T, tree map[string]any) *vmi.VirtualMachineInstance {
	t.Helper()
	data, err := json.Marshal(tree)
	require.NoError(t, err)
	var v vmi.VirtualMachineInstance
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&v), "%s", data)
	return &v
}

// listed are the alternatives that are listed for the leaf: those of the longest
// end of its path.
func (l leaf) listed() ([]any, bool) {
	end := ""
	for e := range alternatives {
		if strings.HasSuffix(l.path, e) && len(e) > len(end) {
			end = e
		}
	}
	return alternatives[end], end != ""
}

// others are values of the leaf that are different from the one that it has.
func (l leaf) others(now any) []any {
	if all, ok := l.listed(); ok {
		return slices.DeleteFunc(slices.Clone(all), func(v any) bool { return reflect.DeepEqual(v, now) })
	}
	s, _ := now.(string)
	switch n, _ := now.(float64); {
	case l.typ == reflect.TypeFor[resource.Quantity]():
		q := resource.MustParse("1Gi")
		if s != "" {
			q = resource.MustParse(s)
			q.Add(q)
		}
		return []any{q.String()}
	case l.typ == reflect.TypeFor[intstr.IntOrString]():
		return []any{n + 81}
	case l.typ.Kind() == reflect.Struct && now == nil:
		return []any{map[string]any{}}
	case l.typ.Kind() == reflect.Struct:
		return []any{nil}
	case l.typ.Kind() == reflect.String:
		return []any{s + "x"}
	case l.typ.Kind() == reflect.Bool:
		return []any{now != true}
	default:
		return []any{n + 1}
	}
}

// changed is the tree with another value of the leaf, and with what goes with it.
func (l leaf) changed(tree map[string]any, p place, value any) map[string]any {
	out := p.set(tree, value)
	for _, sibling := range instead[l.path] {
		out = append(slices.Clip(p[:len(p)-1]), sibling).set(out, nil)
	}
	for a, b := range together {
		for _, other := range []string{a, b} {
			if (l.path != a && l.path != b) || l.path == other {
				continue
			}
			for _, q := range places(tree, other) {
				if q.get(tree) == p.get(tree) {
					out = q.set(out, value)
				}
			}
		}
	}
	return out
}

// outcome is what came of the changes of one leaf.
type outcome struct {
	// tried has each value, and whether it had an effect anywhere.
	tried map[string]bool
	// dead are the places that have the leaf, and where no other value of it that
	// is valid has an effect.
	dead []string
	// refused are the values that were not valid, and why.
	refused []string
}

// try changes the leaf wherever a VMI has it or can have it, as far as that can say something
// new: of a place that has it, whether any value has an effect there; of a value, whether it has
// one anywhere. Where the leaf is not set, a value may be the default, and so without effect.
func (l leaf) try(t *testing.T, trees map[string]map[string]any, before map[string]effects) outcome {
	t.Helper()
	o := outcome{tried: map[string]bool{}}
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		tree := trees[name]
		for _, p := range places(tree, l.path) {
			isSet, valid, differs := p.get(tree) != nil, false, false
			for _, value := range l.others(p.get(tree)) {
				shown := fmt.Sprint(value)
				if o.tried[shown] && (differs || !isSet) {
					continue
				}
				after, err := effectsOf(decode(t, l.changed(tree, p, value)))
				if err != nil {
					o.tried[shown] = o.tried[shown] || false // tried, without an effect so far
					o.refused = append(o.refused, fmt.Sprintf("%s: %v = %v: %v", name, p, value, err))
					continue
				}
				d := before[name].differ(after)
				o.tried[shown] = o.tried[shown] || d
				valid, differs = true, differs || d
			}
			if isSet && valid && !differs {
				o.dead = append(o.dead, fmt.Sprintf("%s: %v", name, p))
			}
		}
	}
	return o
}

// fault says what is wrong with the leaf, or nothing: each value that is listed
// for it must have an effect, or any of those that are not listed.
func (l leaf) fault(o outcome) string {
	var idle []string
	for value, effective := range o.tried {
		if !effective {
			idle = append(idle, value)
		}
	}
	if _, ok := l.listed(); !ok && len(idle) < len(o.tried) {
		idle = nil
	}
	switch refused := strings.Join(append([]string{""}, o.refused...), "\n\t"); {
	case len(o.tried) == 0:
		return "no VMI of testdata has this field, or the object or list that it is in: add it to one"
	case len(idle) > 0:
		return fmt.Sprintf("the values %v have no effect: build it, mark the field +podvisor:unserved, or name valid values in alternatives%s", idle, refused)
	case len(o.dead) > 0:
		return fmt.Sprintf("no other value has an effect at %v%s", o.dead, refused)
	}
	return ""
}

func TestEveryServedFieldHasAnEffect(t *testing.T) {
	trees, before := bases(t), map[string]effects{}
	for name, tree := range trees {
		e, err := effectsOf(decode(t, tree))
		require.NoError(t, err, name)
		before[name] = e
	}
	all, known := leaves(), map[string]bool{}
	var faults []string
	for _, l := range all {
		known[l.path] = true
		fault := l.fault(l.try(t, trees, before))
		switch why, listed := without[l.path]; {
		case listed && fault == "":
			faults = append(faults, l.path+": has an effect: take it out of the list of those without, where it says: "+why)
		case !listed && fault != "":
			faults = append(faults, l.path+": "+fault)
		}
	}
	for path := range without {
		if !known[path] {
			faults = append(faults, path+": is in the list of fields without effect, and is no served field")
		}
	}
	require.Empty(t, faults, strings.Join(faults, "\n"))
	require.NotEmpty(t, all)
	t.Logf("%d served fields have an effect, %d have none", len(all)-len(without), len(without))
}

// A serial number of the chassis is in the domain only, so without looking at the domain it has
// no effect. What is refused has none either.
func TestAFieldWithoutEffectIsFound(t *testing.T) {
	trees, before := bases(t), map[string]effects{}
	for name, tree := range trees {
		e, err := effectsOf(decode(t, tree))
		require.NoError(t, err, name)
		delete(e, "domain")
		before[name] = e
	}
	for _, tt := range []struct {
		leaf leaf
		want string
	}{
		{leaf{"spec.domain.chassis.serial", reflect.TypeFor[string]()}, "have no effect"},
		{leaf{"spec.domain.devices.disks[].lun.reservation", reflect.TypeFor[bool]()}, "not served yet"},
		{leaf{"spec.resourceClaims[].name", reflect.TypeFor[string]()}, "no VMI of testdata has this field"},
	} {
		require.Contains(t, tt.leaf.fault(tt.leaf.try(t, trees, before)), tt.want)
	}
}

func TestTheLeavesAreThoseOfTheTypesThatAreServed(t *testing.T) {
	var paths []string
	for _, l := range leaves() {
		paths = append(paths, l.path)
	}
	require.Subset(t, paths, []string{
		"spec.domain.memory.guest", "spec.domain.devices.rng", "spec.domain.devices.disks[].disk.bus", "spec.domain.resources.limits{}",
		"spec.dnsConfig.nameservers[]", "spec.volumes[].containerDisk.image", "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[].topologyKey",
	})
	require.NotContains(t, paths, "spec.domain.devices.gpus")
}
