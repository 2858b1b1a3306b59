package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/podvisor/podvisor/vmi/kinds"
)

var (
	// list is a list of kinds, of resources or of the names of definitions.
	list = regexp.MustCompile(`\[\s*"[^"/\]]*"(\s*,\s*"[^"/\]]*")*\s*\]`)
	// quoted is an element of it.
	quoted = regexp.MustCompile(`"([^"]*)"`)
	// ofGroup says that a value is the apiVersion of a group of KubeVirt's, and ofGroups of
	// one of several.
	ofGroup  = regexp.MustCompile(`([\w.?]*apiVersion[\w.?]*(?:\(""\))?)\.startsWith\("([a-z.]*kubevirt\.io/)"\)`)
	ofGroups = regexp.MustCompile(`\[("[a-z.]*kubevirt\.io/"(?:, )?)+\]\.exists\(g, (\S+)\.startsWith\(g\)\)`)
)

// expressions makes the lists of the items those of the sets.
func (f *family) expressions(all []kinds.Kind) error {
	for _, i := range f.items {
		var groups []string
		n := 0
		var err error
		i.text = list.ReplaceAllStringFunc(i.text, func(old string) string {
			if n == len(f.sets) {
				n++
				return old
			}
			members, fault := set(f.sets[n], all)
			if n++; fault != nil {
				err = fault
				return old
			}
			for _, k := range members {
				groups = append(groups, k.Group+"/")
			}
			return listed(old, members)
		})
		switch {
		case err != nil:
			return fmt.Errorf("%q: %w", f.comment, err)
		case n != len(f.sets):
			return fmt.Errorf("%q: the item has %d lists", f.comment, n)
		}
		i.text = grouped(i.text, groups)
	}
	return nil
}

// listed is the list with the kinds in the form of its elements.
func listed(old string, members []kinds.Kind) string {
	var there, want []string
	for _, m := range quoted.FindAllStringSubmatch(old, -1) {
		there = append(there, m[1])
	}
	for _, k := range members {
		switch first := there[0]; {
		case strings.Contains(first, "."):
			want = append(want, k.Resource().GroupResource().String())
		case first == strings.ToLower(first):
			want = append(want, k.Plural)
		default:
			want = append(want, k.Kind)
		}
	}
	for _, element := range there {
		if !slices.Contains(want, element) {
			old = regexp.MustCompile(`\s*"`+regexp.QuoteMeta(element)+`",?`).ReplaceAllLiteralString(old, "")
		}
	}
	old = strings.TrimRight(strings.TrimSuffix(old, "]"), ", \n")
	for _, element := range want {
		if !slices.Contains(there, element) {
			old += `, "` + element + `"`
		}
	}
	// If the first one went, what follows it is the first.
	return "[" + strings.TrimLeft(old, "[, \n") + "]"
}

// grouped is the expression with the groups of its kinds.
func grouped(text string, groups []string) string {
	slices.Sort(groups)
	groups = slices.Compact(groups)
	write := func(value string) string {
		if len(groups) == 1 {
			return value + `.startsWith("` + groups[0] + `")`
		}
		return "[" + quote(groups) + "].exists(g, " + value + ".startsWith(g))"
	}
	text = ofGroups.ReplaceAllStringFunc(text, func(old string) string { return write(ofGroups.FindStringSubmatch(old)[2]) })
	return ofGroup.ReplaceAllStringFunc(text, func(old string) string { return write(ofGroup.FindStringSubmatch(old)[1]) })
}

func quote(all []string) string { return `"` + strings.Join(all, `", "`) + `"` }
