package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/podvisor/podvisor/vmi/kinds"
)

// set are the served kinds of the set of this name.
func set(name string, all []kinds.Kind) ([]kinds.Kind, error) {
	in := map[string]func(kinds.Kind) bool{
		"served":    func(kinds.Kind) bool { return true },
		"completed": func(k kinds.Kind) bool { return k.Open },
		"others":    func(k kinds.Kind) bool { return !k.Open },
		"guests":    kinds.Kind.RunsGuests,
		"makers":    func(k kinds.Kind) bool { return k.Template != nil },
		"status":    func(k kinds.Kind) bool { return len(k.StatusBy) > 0 },
		granted:     func(k kinds.Kind) bool { return len(k.Grants) > 0 },
	}[name]
	if by, ok := strings.CutPrefix(name, "events of "); ok {
		in = func(k kinds.Kind) bool { return slices.Contains(k.EventsBy, kinds.Component(by)) }
	}
	if in == nil {
		return nil, fmt.Errorf("there is no set of kinds %q: see the comment of internal/kindgen", name)
	}
	out := slices.DeleteFunc(slices.Clone(all), func(k kinds.Kind) bool { return !k.Served() || !in(k) })
	if len(out) == 0 {
		return nil, fmt.Errorf("the set of kinds %q is empty", name)
	}
	return out, nil
}

// granted is the set whose rules are those of a role.
const granted = "granted"

// right is a resource of a kind in a rule.
type right struct {
	key
	resource string
}

// key is what the resources of a rule have in common.
type key struct {
	group, version, scope string
	// verbs are separated by commas, and empty in a rule without verbs.
	verbs       string
	subresource string
}

// rights are what the rules of the set say together. Of a set that is not granted, the
// rules are for the subresource.
func rights(name, role, subresource string, all []kinds.Kind) ([]right, error) {
	members, err := set(name, all)
	if err != nil {
		return nil, err
	}
	var out []right
	for _, k := range members {
		at := key{group: k.Group, version: k.Version, scope: "Namespaced", subresource: subresource}
		if k.ClusterScoped {
			at.scope = "Cluster"
		}
		if name != granted {
			out = append(out, right{at, k.Plural + subresource})
			continue
		}
		for _, g := range k.Grants {
			if g.Role != role {
				continue
			}
			at.verbs, at.subresource = strings.Join(g.Verbs, ","), ""
			if g.Subresource != "" {
				at.subresource = "/" + g.Subresource
			}
			out = append(out, right{at, k.Plural + at.subresource})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no kind has a grant for the role %q", role)
	}
	return out, nil
}
