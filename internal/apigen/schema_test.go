package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// differences are what our schema says otherwise than KubeVirt's, with the
// reason.
var differences = map[string]string{
	"spec":              "KubeVirt's list leaves out what it says about it",
	"spec.domain.clock": "KubeVirt's lets unknown fields pass",
	"spec.replicas":     "one replica is the default there too, but only in the code",
	"spec.domain.devices.interfaces[].ports[].protocol": "TCP is the default there too, but only in the code",
}

// What KubeVirt's schema says, ours says too. Ours may say more, since KubeVirt
// checks much only in its webhooks.
func TestTypesAreKubeVirts(t *testing.T) {
	m, all := generate(t)
	for _, d := range all {
		t.Run(d.kind(), func(t *testing.T) {
			ours := map[string][]string{}
			for _, top := range []string{"spec", "status"} {
				describeAll(m, top, d.schema().child("properties").child(top), m.types[d.kind()].fields[top], false, ours)
			}
			for _, theirs := range readList(t, d.plural()).lines {
				got, ok := ours[theirs.path]
				if ofTemplate(theirs.path) || !ok || differences[theirs.path] != "" {
					continue
				}
				want := theirs.words
				require.Subset(t, got, want, theirs.path)
				for _, w := range got {
					if w == "required" || strings.HasPrefix(w, "default=") {
						require.Contains(t, want, w, theirs.path)
					}
				}
			}
		})
	}
}

func contains(list any, name string) bool {
	l, _ := list.([]any)
	for _, v := range l {
		if v == name {
			return true
		}
	}
	return false
}

// describeAll describes a field and those below it in the words of the lists.
func describeAll(m *model, path string, s node, f *goField, required bool, out map[string][]string) {
	elem, suffix := s.element()
	var t *goType
	if f != nil {
		t = m.types[f.elem]
	}
	switch suffix {
	case "{}":
		out[path] = words(s, nil, "map[string]", required)
		out[path+suffix] = words(elem, t, describe(elem), false)
	case "[]":
		out[path+suffix] = append(words(elem, t, describe(elem), required), words(s, nil, "", false)...)
	default:
		out[path] = words(s, t, describe(s), required)
	}
	properties := elem.child("properties")
	for name := range properties {
		var below *goField
		if t != nil {
			below = t.fields[name]
		}
		describeAll(m, path+suffix+"."+name, properties.child(name), below, contains(elem["required"], name), out)
	}
}

func words(s node, t *goType, kind string, required bool) []string {
	w := strings.Fields(kind)
	if required {
		w = append(w, "required")
	}
	if s["x-kubernetes-preserve-unknown-fields"] == true {
		w = append(w, "free-form")
	}
	for _, key := range []string{"pattern", "minimum", "maximum", "minLength", "maxLength", "default", "x-kubernetes-list-type"} {
		if v, ok := s[key]; ok {
			w = append(w, key+"="+value(v))
		}
	}
	if keys, ok := s["x-kubernetes-list-map-keys"]; ok {
		w = append(w, "keys="+join(keys))
	}
	if t != nil && t.enum {
		values := slices.Clone(t.values)
		for _, u := range t.unbuilt { // known to be a value, and refused with its reason
			values = append(values, u.value)
		}
		w = append(w, "enum", strings.Join(values, "|"))
	} else if list, ok := s["enum"]; ok {
		w = append(w, "enum", strings.ReplaceAll(join(list), ",", "|"))
	}
	return w
}

// value writes a constant as the lists do.
func value(v any) string {
	switch v := v.(type) {
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		return strings.ToUpper(strconv.FormatBool(v)[:1]) + strconv.FormatBool(v)[1:]
	}
	return fmt.Sprint(v)
}

func TestEveryFieldIsDescribed(t *testing.T) {
	m, all := generate(t)
	m.serveAll()
	for _, d := range all {
		p := pruner{model: m}
		p.definition(d)
		require.Empty(t, p.faults)
		described(t, d.kind(), d.schema(), m, m.types[d.kind()])
	}
}

// described fails if a field of a type of the package has no description.
func described(t *testing.T, path string, s node, m *model, of *goType) {
	t.Helper()
	for name, v := range s.child("properties") {
		f := of.fields[name]
		if f == nil {
			continue
		}
		field := object(v)
		if name != "metadata" {
			require.NotEmpty(t, field["description"], "%s.%s", path, name)
		}
		if below := m.types[f.elem]; below != nil {
			elem, suffix := field.element()
			described(t, path+"."+name+suffix, elem, m, below)
		}
	}
}

func TestHeadsAreKubeVirts(t *testing.T) {
	_, all := generate(t)
	for _, d := range all {
		t.Run(d.kind(), func(t *testing.T) {
			var want []string
			for _, h := range readList(t, d.plural()).head {
				if strings.HasPrefix(h, "plural") || strings.HasPrefix(h, "scale") || strings.HasPrefix(h, "column") {
					want = append(want, h)
				}
			}
			if d.kind() == instanceKind {
				// Ours alone has a status that users cannot write.
				want[0] = strings.TrimSuffix(want[0], " ") + " status"
			}
			if d.kind() == "MigrationPolicy" {
				// Its status is empty everywhere, and is not served.
				want[0] = strings.TrimSuffix(want[0], "status")
			}
			got := head(d)
			require.Equal(t, want, got[:len(want)])
			for _, column := range got[len(want):] {
				require.Contains(t, furtherColumns, column)
			}
		})
	}
}

// furtherColumns are columns that KubeVirt has not. They are behind those that it
// has.
var furtherColumns = []string{
	"column CPU integer .spec.cpu.guest", "column Memory string .spec.memory.guest", "column Age date .metadata.creationTimestamp",
	"column Reason string .status.reason",
	"column Deleting date .metadata.deletionTimestamp",
	"column Message string .status.conditions[?(@.type=='Ready')].message priority=1",
}

// head is the head of a list for a definition.
func head(d *definition) []string {
	names := d.root.child("spec").child("names")
	version := object(d.root.child("spec")["versions"].([]any)[0])
	sub := version.child("subresources")
	subresources := strings.Join(slices.Sorted(maps.Keys(sub)), ", ")
	out := []string{fmt.Sprintf("plural %s; short %s; categories %s; subresources %s", names["plural"], join(names["shortNames"]), join(names["categories"]), subresources)}
	if scale := sub.child("scale"); scale != nil {
		out = append(out, fmt.Sprintf(`scale {"labelSelectorPath": %q, "specReplicasPath": %q, "statusReplicasPath": %q}`,
			scale["labelSelectorPath"], scale["specReplicasPath"], scale["statusReplicasPath"]))
	}
	columns, _ := version["additionalPrinterColumns"].([]any)
	for _, c := range columns {
		c := object(c)
		text := fmt.Sprintf("column %s %s %s", c["name"], c["type"], c["jsonPath"])
		if p, ok := c["priority"]; ok {
			text += fmt.Sprintf(" priority=%v", p)
		}
		out = append(out, text)
	}
	return out
}

func join(list any) string {
	var out []string
	all, _ := list.([]any)
	for _, v := range all {
		out = append(out, v.(string))
	}
	return strings.Join(out, ",")
}
