package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/podvisor/podvisor/vmi/kinds"
)

var definition = regexp.MustCompile(`^- crds/\S+\.yaml$`)

// installed is the kustomization with the definitions of the served kinds.
func installed(text string, all []kinds.Kind) string {
	var want []string
	for _, k := range all {
		if k.Served() {
			want = append(want, "- crds/"+k.Group+"_"+k.Plural+".yaml")
		}
	}
	lines := strings.Split(text, "\n")
	last := 0
	for n, line := range lines {
		if definition.MatchString(line) {
			last = n
		}
	}
	missing := slices.DeleteFunc(slices.Clone(want), func(line string) bool { return slices.Contains(lines, line) })
	lines = slices.Insert(lines, last+1, missing...)
	lines = slices.DeleteFunc(lines, func(line string) bool { return definition.MatchString(line) && !slices.Contains(want, line) })
	return strings.Join(lines, "\n")
}
