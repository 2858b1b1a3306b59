package verb

import (
	"slices"
	"strings"
)

// includes are the roles whose verbs a role has too, itself among them. The roles aggregate
// to those of Kubernetes: admin has what edit has without naming it, and edit names what
// view has.
var includes = map[Role][]Role{View: {View}, Edit: {View, Edit}, Admin: {Admin}, Migrate: {Migrate}}

// Resources are what the ClusterRole of the role names in a rule for the verbs of the method,
// VMIs first. A verb of two segments is there in two forms: the API server asks whether the
// user may use the first segment, and virt-controller whether the user may use both.
func Resources(role Role, method string) []string {
	var out []string
	for _, resource := range []string{VMIs, VMs, Expand} {
		for _, v := range table {
			if v.Resource != resource || v.Method != method || !slices.Contains(includes[role], v.Role) {
				continue
			}
			if first, _, two := strings.Cut(v.Subresource, "/"); two && !served(resource, first) {
				out = append(out, resource+"/"+first)
			}
			out = append(out, v.Path())
		}
	}
	return out
}

// served reports whether the first segment of a verb is a verb itself, of a lower role.
func served(resource, subresource string) bool {
	_, ok := Find(resource, subresource)
	return ok
}
