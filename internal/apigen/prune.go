package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// pruner takes out of a schema what is not served.
type pruner struct {
	model *model
	// kind is the kind whose schema is pruned, and untyped are its fields that have
	// no type.
	kind    string
	untyped []gap
	// pruned is what was taken out, with paths that begin with the kind.
	pruned []gap
	faults []error
	// hidden are the fields of specs that were taken out.
	hidden []hidden
}

func (p *pruner) fault(format string, args ...any) {
	p.faults = append(p.faults, fmt.Errorf(format, args...))
}

func (p *pruner) definition(d *definition) {
	s := d.schema()
	p.kind, p.untyped = d.kind(), untypedOf(p.model, d)
	p.schema(d.kind(), s, p.model.types[d.kind()])
	limit(s)
	limitLists(s) // of the metadata of templates, which is described here
	p.addFormer(d)
	p.refuseHidden()
}

// schema prunes the schema of a type, and names in its description what is not
// served of it.
func (p *pruner) schema(at string, s node, t *goType) {
	before := len(p.pruned)
	p.prune(at, s, t)
	p.mention(at, s, p.pruned[before:])
}

// whereToLook ends the list of fields that are not served.
const whereToLook = ". Podvisor's docs/fields.md and its program check-manifest say why."

// mention appends to the description of an object the names of its fields that
// KubeVirt has and that are not served: those that were taken out, and those that
// have no type.
func (p *pruner) mention(at string, s node, pruned []gap) {
	var names []string
	add := func(path string) {
		if rest, ok := strings.CutPrefix(path, at+"."); ok && !strings.ContainsAny(rest, ".[{") {
			names = append(names, rest)
		}
	}
	for _, g := range pruned {
		if g.value == "" {
			add(g.path)
		}
	}
	for _, g := range p.untyped {
		add(p.kind + "." + g.path)
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	d, _ := s["description"].(string)
	s["description"] = strings.TrimSpace(d + "\n\nNot served: " + strings.Join(slices.Compact(names), ", ") + whereToLook)
}

// prune prunes the schema of a type.
func (p *pruner) prune(at string, s node, t *goType) {
	if t.enum {
		if len(t.values) == 0 {
			p.fault("%s: type %s has no values", at, t.name)
		}
		s["enum"] = anyList(t.values)
		for _, u := range t.unbuilt {
			p.pruned = append(p.pruned, gap{path: at, value: u.value, why: u.why})
		}
	}
	limitNumber(s, t.basic)
	p.rules(at, s, t)
	for _, in := range t.outside {
		p.known(at, s, in)
	}
	for name, v := range s.child("properties") {
		f := t.fields[name]
		if f == nil {
			if below := t.below(name); !p.hide(at, s, name, below) {
				p.foreign(at+"."+name, object(v), below)
			}
			continue
		}
		if p.hide(at, s, name, f) {
			continue
		}
		rename(object(v), f.name, name)
		p.field(at+"."+name, object(v), f)
	}
}

// hide takes a property out of the schema of its struct if the field is not
// served, and says whether it did.
func (p *pruner) hide(at string, s node, name string, f *goField) bool {
	if f == nil || f.hidden() == "" {
		return false
	}
	was := object(s.child("properties")[name])
	if t, ok := was["type"].(string); ok && strings.HasPrefix(at, p.kind+".spec") {
		items, _ := was.child("items")["type"].(string)
		p.hidden = append(p.hidden, hidden{in: s, name: name, kind: t, items: items, why: f.hidden(), refused: f.refused != ""})
	}
	delete(s.child("properties"), name)
	unrequire(s, name)
	p.pruned = append(p.pruned, gap{path: at + "." + name, why: f.hidden(), refused: f.refused != ""})
	return true
}

// rename makes a description whose subject is the field begin with its name as
// users write it.
func rename(s node, goName, name string) {
	d, _ := s["description"].(string)
	rest, ok := strings.CutPrefix(d, goName+" ")
	if !ok || strings.HasPrefix(rest, "of ") || strings.HasPrefix(rest, "per ") {
		return
	}
	s["description"] = name + " " + rest
}

// field prunes the schema of one field of a type of the package.
func (p *pruner) field(at string, s node, f *goField) {
	elem, suffix := s.element()
	if t := p.model.typeOf(f); t != nil {
		if len(f.unbuilt) > 0 {
			p.fault("%s: unservedValues is for words without a type of their own: mark the constants of %s", at, t.name)
		}
		p.known(at, elem, f)
		p.schema(at+suffix, elem, t)
		return
	}
	limitNumber(elem, f.basic)
	for _, u := range f.unbuilt {
		p.pruned = append(p.pruned, gap{path: at + suffix, value: u.value, why: u.why})
	}
	if f.elem == "metav1.ObjectMeta" && strings.Contains(at, ".spec.") {
		describeMetadata(elem)
	}
	p.known(at, elem, f)
	own, _ := s["description"].(string)
	delete(s, "description")
	p.foreign(at, s, f)
	if mentioned, _ := s["description"].(string); own+mentioned != "" {
		s["description"] = strings.TrimSpace(own + "\n\n" + mentioned)
	}
}

// known checks that the markers of f name fields of its type.
func (p *pruner) known(at string, elem node, f *goField) {
	for _, m := range f.inner {
		if !elem.has(m.path) {
			p.fault("%s: a marker names the unknown field %s of %s", at, strings.Join(m.path, "."), f.elem)
		}
	}
}

// foreign prunes the schema of a type of another package and shortens its
// descriptions to their first sentence: it is documented where it is from. The
// field that has the type, or nil, knows what is not served.
func (p *pruner) foreign(at string, s node, f *goField) {
	if d, ok := s["description"].(string); ok {
		s["description"] = firstSentence(d)
	}
	before := len(p.pruned)
	for name, v := range s.child("properties") {
		if below := f.below(name); !p.hide(at, s, name, below) {
			p.foreign(at+"."+name, object(v), below)
		}
	}
	p.mention(at, s, p.pruned[before:])
	if e, suffix := s.element(); suffix != "" {
		p.foreign(at+suffix, e, f)
	}
}

func firstSentence(s string) string {
	s, _, _ = strings.Cut(s, "\n\n")
	s = strings.Join(strings.Fields(s), " ")
	for i := 0; ; {
		j := strings.Index(s[i:], ". ")
		if j < 0 {
			return s
		}
		i += j + 2
		if abbreviation := s[:i-1]; !strings.HasSuffix(abbreviation, "e.g.") && !strings.HasSuffix(abbreviation, "i.e.") {
			return s[:i-1]
		}
	}
}

func unrequire(s node, name string) {
	list, _ := s["required"].([]any)
	list = slices.DeleteFunc(list, func(v any) bool { return v == name })
	if len(list) == 0 {
		delete(s, "required")
		return
	}
	s["required"] = list
}

const validations = "x-kubernetes-validations"

// rules leaves out rules about unserved fields and adds those of the unions.
func (p *pruner) rules(at string, s node, t *goType) {
	var keep []any
	list, _ := s[validations].([]any)
	for _, r := range list {
		if p.aboutServed(at, object(r)["rule"].(string), t) {
			keep = append(keep, r)
		}
	}
	for _, u := range t.unions {
		if r := p.union(at, s, t, u); r != nil {
			keep = append(keep, map[string]any(r))
		}
	}
	if len(keep) == 0 {
		delete(s, validations)
		return
	}
	s[validations] = keep
}

var selection = regexp.MustCompile(`\bself((?:\.[A-Za-z_][A-Za-z0-9_]*)+)(\()?`)

// aboutServed says whether all fields that a rule names are served.
func (p *pruner) aboutServed(at, rule string, t *goType) bool {
	for _, m := range selection.FindAllStringSubmatch(rule, -1) {
		path := strings.Split(m[1][1:], ".")
		if m[2] != "" {
			path = path[:len(path)-1]
		}
		if !p.servedPath(at, rule, path, t) {
			return false
		}
	}
	return true
}

// servedPath says whether the fields on a path from a type are served.
func (p *pruner) servedPath(at, rule string, path []string, t *goType) bool {
	var f *goField
	for ; len(path) > 0; path = path[1:] {
		if t == nil {
			f = f.below(path[0])
		} else if f = t.field(path[0]); f == nil {
			p.fault("%s: the rule %q names the unknown field %s", at, rule, path[0])
			return false
		}
		if f == nil {
			return true
		}
		if f.hidden() != "" {
			return false
		}
		t = p.model.typeOf(f)
	}
	return true
}

// union is the rule over those members that are served, nil if there is nothing
// to say.
func (p *pruner) union(at string, s node, t *goType, u union) node {
	var names, set []string
	for _, name := range u.members {
		f := t.fields[name]
		if f == nil {
			p.fault("%s: %s names the unknown field %s", at, u.rule, name)
			continue
		}
		if f.hidden() != "" {
			continue
		}
		names = append(names, name)
		has := "has(self." + name + ")"
		if s.child("properties").child(name)["type"] == "string" {
			has = "(" + has + " && self." + name + " != '')"
		}
		set = append(set, has)
	}
	if len(names) == 0 {
		return nil
	}
	rule := unionRule(u.rule, set)
	if n := wholeSize(s, u); n > 0 {
		rule = "dyn(self).size() == " + strconv.Itoa(n)
	}
	if rule == "" {
		return nil
	}
	return node{"rule": rule, "message": u.message + ": " + enumerate(names)}
}

func unionRule(rule string, set []string) string {
	count := "[" + strings.Join(set, ", ") + "].filter(x, x).size()"
	switch {
	case rule == "atMostOne" && len(set) == 1:
		return ""
	case rule == "atMostOne" && len(set) == 2:
		return "!(" + set[0] + " && " + set[1] + ")"
	case rule == "atMostOne":
		return count + " <= 1"
	case rule == "atLeastOne":
		return strings.Join(set, " || ")
	case len(set) == 1:
		return set[0]
	case len(set) == 2:
		return set[0] + " != " + set[1]
	}
	return count + " == 1"
}

// wholeSize is how many fields an object has that has exactly one member of the union, if the
// number says that: each of its other fields is required. 0: the number does not say it. An API
// server copies the schemas of all fields of an object each time that a rule looks at one, and
// evaluates the rules at each write of the status too.
func wholeSize(s node, u union) int {
	if u.rule != "exactlyOne" || len(u.members) < 3 {
		return 0
	}
	required, _ := s["required"].([]any)
	for name, p := range s.child("properties") {
		member := slices.Contains(u.members, name)
		if member == slices.Contains(required, any(name)) || member && object(p)["type"] == "string" {
			return 0
		}
	}
	return len(required) + 1
}

// enumerate writes "a, b or c".
func enumerate(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func anyList(list []string) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}
