package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/podvisor/podvisor/vmi/kinds"
)

var scopeOf = regexp.MustCompile(`scope: (\w+)`)

// flow are the elements of the list with this name in the item, if it has it in one line.
func flow(text, name string) ([]string, bool) {
	m := flowOf(name).FindStringSubmatch(text)
	if m == nil {
		return nil, false
	}
	return strings.Split(m[1], ", "), true
}

func flowOf(name string) *regexp.Regexp { return regexp.MustCompile(name + `: \[([^\]]*)\]`) }

func setFlow(text, name string, elements ...string) string {
	return flowOf(name).ReplaceAllLiteralString(text, name+": ["+strings.Join(elements, ", ")+"]")
}

// keyOf is the key of a rule, with what all its resources have.
func keyOf(text string) key {
	var k key
	one := func(name string) string { all, _ := flow(text, name); return strings.Join(all, ",") }
	k.group, k.version, k.verbs = one("apiGroups"), one("apiVersions"), one("verbs")
	if m := scopeOf.FindStringSubmatch(text); m != nil {
		k.scope = m[1]
	}
	k.subresource = subresourceOf(text)
	return k
}

// subresourceOf is the subresource that a rule is for, with its slash.
func subresourceOf(text string) string {
	resources, _ := flow(text, "resources")
	_, sub, ok := strings.Cut(resources[0], "/")
	if !ok {
		return ""
	}
	return "/" + sub
}

// as is the key as far as rules like the text say it.
func (k key) as(text string) key {
	is := keyOf(text)
	if is.version == "" || is.version == `"*"` {
		k.version = is.version
	}
	if is.scope == "" {
		k.scope = ""
	}
	if k.verbs == "" {
		k.verbs = is.verbs
	}
	return k
}

// rules makes the rules of the family those of the kinds.
func (f *family) rules(all []kinds.Kind) error {
	if len(f.sets) != 1 {
		return fmt.Errorf("%q: a rule has the resources of one set", f.comment)
	}
	first := f.items[0].text
	want, err := rights(f.sets[0], f.role, subresourceOf(first), all)
	if err != nil {
		return fmt.Errorf("%q: %w", f.comment, err)
	}
	var keys []key
	missing := map[key][]string{}
	for _, r := range want {
		k := r.as(first)
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
		missing[k] = append(missing[k], r.resource)
	}
	desired := func(k key, resource string) bool { return slices.Contains(missing[k], resource) }
	has := map[*item][]string{}
	for _, i := range f.items {
		there, _ := flow(i.text, "resources")
		has[i] = slices.DeleteFunc(there, func(r string) bool { return !desired(keyOf(i.text), r) })
	}
	for i, there := range has {
		k := keyOf(i.text)
		missing[k] = slices.DeleteFunc(missing[k], func(r string) bool { return slices.Contains(there, r) })
	}
	last := f.items[len(f.items)-1]
	for _, k := range keys {
		if len(missing[k]) == 0 {
			continue
		}
		if n := slices.IndexFunc(f.items, func(i *item) bool { return keyOf(i.text) == k }); n >= 0 {
			has[f.items[n]] = append(has[f.items[n]], missing[k]...)
			continue
		}
		last.more = append(last.more, k.rule(first, missing[k]))
	}
	for i, there := range has {
		if len(there) == 0 {
			i.text = ""
			continue
		}
		i.text = setFlow(i.text, "resources", there...)
	}
	return nil
}

// rule is a rule like the text with this key.
func (k key) rule(text string, resources []string) string {
	text = setFlow(text, "apiGroups", k.group)
	text = setFlow(text, "apiVersions", k.version)
	text = setFlow(text, "resources", resources...)
	text = setFlow(text, "verbs", strings.Split(k.verbs, ",")...)
	return scopeOf.ReplaceAllLiteralString(text, "scope: "+k.scope)
}
