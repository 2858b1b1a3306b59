package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/podvisor/podvisor/internal/proof"
	"github.com/podvisor/podvisor/vmi/served"
)

// The states of a field.
const (
	stateServed  = "served"
	stateTyped   = "typed"
	stateRefused = "refused"
)

// row is a field in the table.
type row struct {
	path, kind, state, reason string
}

// instanceKind is the kind whose spec the templates of others repeat.
const instanceKind = "VirtualMachineInstance"

// templateSpec is the field that repeats it.
const templateSpec = "spec.template.spec"

// rows lists the fields of a kind: those of its schema and those that are
// refused.
func rows(m *model, d *definition) []row {
	kind := d.kind()
	t := m.types[kind]
	var out []row
	w := walker{model: m, add: func(r row) { out = append(out, r) }}
	for _, top := range []string{"spec", "status"} {
		s := d.schema().child("properties").child(top)
		if s == nil {
			continue
		}
		w.field(top, s, t.fields[top], row{state: stateServed}.under(t.unserved, ""))
	}
	for _, r := range refused[kind] {
		out = append(out, row{path: r.path, state: stateRefused, reason: r.reason})
	}
	slices.SortFunc(out, func(a, b row) int { return strings.Compare(a.path, b.path) })
	return out
}

// under is the state of a field below one in the state of r that carries these
// markers itself.
func (r row) under(unserved, refused string) row {
	if refused != "" {
		return row{state: stateRefused, reason: refused}
	}
	if r.state == stateServed && unserved != "" {
		return row{state: stateTyped, reason: unserved}
	}
	return r
}

type walker struct {
	model *model
	add   func(row)
}

// opaque are types of Kubernetes' own that KubeVirt's lists name without their
// fields, and so does the table.
var opaque = []string{"corev1.Affinity", "corev1.Toleration", "corev1.TopologySpreadConstraint", "corev1.PodDNSConfig"}

// field adds a field and those below it. f is nil below a type of another package,
// unless a marker says something about the field.
func (w walker) field(path string, s node, f *goField, r row) {
	elem, suffix := s.element()
	if f != nil {
		r = r.under(f.unserved, f.refused)
	}
	if suffix == "{}" {
		w.put(path, "map", r)
	}
	w.put(path+suffix, describe(elem), r)
	if path == templateSpec || f != nil && slices.Contains(opaque, f.elem) {
		return
	}
	var t *goType
	if f != nil {
		t = w.model.types[f.elem]
	}
	if r.state == stateServed {
		for _, u := range unbuiltOf(f, t) {
			w.put(path+suffix+": "+u.value, "value", row{state: stateTyped, reason: u.why})
		}
	}
	properties := elem.child("properties")
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		below := f.below(name)
		if t != nil {
			below = t.field(name)
		}
		w.field(path+suffix+"."+name, properties.child(name), below, r)
	}
}

// unbuiltOf are the values of a field of the type that are not served.
func unbuiltOf(f *goField, t *goType) []unbuilt {
	var all []unbuilt
	if f != nil {
		all = append(all, f.unbuilt...)
	}
	if t != nil {
		all = append(all, t.unbuilt...)
	}
	return all
}

func (w walker) put(path, kind string, r row) {
	r.path, r.kind = path, kind
	w.add(r)
}

// describe is the type of a field in words.
func describe(s node) string {
	if s["x-kubernetes-int-or-string"] == true {
		return "int-or-string"
	}
	t, _ := s["type"].(string)
	if f, ok := s["format"].(string); ok {
		t += " " + f
	}
	return t
}

const tableHead = `# The fields of the API

Written by ` + "`make generate`" + ` from the types in package vmi; do not edit.

- **served**: in the schema, and it has the effect that its description says. The last columns say where a test sees that effect, and its name:
  - **guest**: a guest that has booted sees it, or does what it says.
  - **domain**: libvirt starts QEMU with it.
  - **pod**: a real API server, kubelet or kernel has it in the launcher's pod or the pod's network.
  - **API**: an object on a real API server shows it.
  - **XML**: only the XML of the domain has it, or the pod that is made of the VMI: the hosts of the tests have no hardware for more, or there is
    nothing more to see.
  - **unit**: a test of what the library computes.
- **typed**: in the Go types, with defaults and validation, but not in the schema until what the last column says is built; the API server
  refuses a manifest that sets it.
- **refused**: not offered, for the reason in the last column. A line stands for all fields below it too.

The API server refuses a field of a spec that has a type here and is not served, whatever client writes it, and says why:
` + "`spec.instancetype: Forbidden: not served yet: there are no instance types`" + `. Of any other field it says only ` + "`unknown field \"spec.domain.devices.tpn\"`" + `,
whether the name is misspelt or KubeVirt has it, and says it only to clients that ask for strict validation, as kubectl does: for others it drops the field.
Look for it below, or in ` + "`kubectl explain vmi.spec.domain.devices`" + `, which names what is not served of an object, or run
` + "`go run ./examples/check-manifest FILE`" + `, which lists all faults of a manifest and, apart from them, all that is not served. Then leave the field
out: what the VMI does instead is in the last column.

` + "`[]`" + ` marks the elements of a list, ` + "`{}`" + ` the values of a map. Types of Kubernetes' own are named without their fields.
`

const marksHead = `
## Annotations and labels

Those of VMIs, VMs and templates by which KubeVirt does something. Each **works** as in KubeVirt, or is **refused** with its reason, or is **harmless**: it
changes nothing, and the VMI is what its author asks for without it. The labels that only Podvisor writes are refused from all others. All
other annotations of a VMI are those of its pod, so that what a service mesh or a backup program reads there has its effect.

| key | what it is | state | what it does, or why not |
|---|---|---|---|
`

const kindsHead = `
## Kinds that are not served

The API server does not have these kinds of KubeVirt's. kubectl says of such an object
` + "`no matches for kind \"VirtualMachinePool\" in version \"pool.kubevirt.io/v1beta1\"`" + `, and ` +
	"`ensure CRDs are installed first`" + `: the installation lacks nothing, the kind is not
served, for the reason in the table. ` + "`go run ./examples/check-manifest FILE`" + ` says the reason, and client-go's errors of such a kind are of ` +
	"`meta.IsNoMatchError`" + `. A
` + "`DataVolume`" + ` is a kind of CDI's, which is there where CDI is installed.

| kind | why it is not there, and what to use |
|---|---|
`

// renderTable writes the table of all kinds.
func renderTable(m *model, all []*definition) string {
	var b strings.Builder
	b.WriteString(tableHead)
	b.WriteString("\n| kind | served | typed | refused |\n|---|---|---|---|\n")
	for _, d := range all {
		n := map[string]int{}
		for _, r := range rows(m, d) {
			n[r.state]++
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", d.kind(), n[stateServed], n[stateTyped], n[stateRefused])
	}
	for _, d := range all {
		fmt.Fprintf(&b, "\n## %s\n\n", d.kind())
		if d.kind() != instanceKind && hasTemplate(m, d) {
			fmt.Fprintf(&b, "`%s` has the fields of the spec of a %s.\n\n", templateSpec, instanceKind)
		}
		b.WriteString("| field | type | state | seen in | test, or why not served |\n|---|---|---|---|---|\n")
		all := rows(m, d)
		for i, r := range all {
			place, last := "", r.reason
			if r.state == stateServed && !isAbove(r, all[i+1:]) {
				place, last = seen(d.kind(), r.path)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.path, r.kind, r.state, place, last)
		}
	}
	b.WriteString(marksHead)
	for _, m := range served.Marks() {
		kind := "annotation"
		if m.Label {
			kind = "label"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Key, kind, m.State, m.Why)
	}
	b.WriteString(kindsHead)
	for _, d := range all {
		if why := m.types[d.kind()].unserved; why != "" {
			fmt.Fprintf(&b, "| %s | %s |\n", d.kind(), why)
		}
	}
	for _, r := range refusedKinds {
		fmt.Fprintf(&b, "| %s | %s |\n", r.path, r.reason)
	}
	return b.String()
}

// isAbove says that one of the rows that follow is of a field below that of r, which has
// no effect of its own.
func isAbove(r row, following []row) bool {
	return slices.ContainsFunc(following, func(f row) bool {
		return f.state == stateServed && (strings.HasPrefix(f.path, r.path+".") || f.path == r.path+"{}")
	})
}

// seen is where a test sees the effect of the field, and the test.
func seen(kind, path string) (place, test string) {
	p, ok := proof.Of(kind, path)
	if !ok {
		return "", ""
	}
	return string(p.Place), "`" + p.Test + "`"
}
