package fault

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// The verbs of steps that are no requests of the component.
const (
	event  = "event"
	review = "review"
)

// Step is a place in a trace at which a fault can be injected: the nth request of a kind,
// the nth event of a watch, or the nth review that the API server asks for.
type Step struct {
	// Name is the verb and the resource, for example "update virtualmachineinstances/status".
	// Required.
	Name string
	// Number counts the steps of this name, from 1 on. Required.
	Number int
}

// String is the step as [ParseStep] reads it.
func (s Step) String() string { return s.Name + " #" + strconv.Itoa(s.Number) }

// ParseStep reads what [Step.String] writes.
func ParseStep(text string) (Step, error) {
	name, number, ok := strings.Cut(text, " #")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 1 {
		return Step{}, fmt.Errorf("step %q is not a name, \" #\" and a number", text)
	}
	return Step{Name: name, Number: n}, nil
}

// request is what is known of a request to the API server by its address.
type request struct {
	verb string
	// resource has the subresource behind a slash. Empty: it is about no resource.
	resource string
	// namespace is empty for all namespaces and for what has none.
	namespace string
	// object is the name of the object. Empty: it is about more than one, or a new one.
	object string
	// root is the path before the namespace or the resource, and rest what follows.
	root, rest string
}

// parse reads the address of a request.
func parse(r *http.Request) request {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	before := 0
	switch parts[0] {
	case "api":
		before = 2
	case "apis":
		before = 3
	}
	if before == 0 || len(parts) <= before {
		return request{verb: strings.ToLower(r.Method), rest: r.URL.Path}
	}
	q := request{root: "/" + strings.Join(parts[:before], "/")}
	parts = parts[before:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		q.namespace, parts = parts[1], parts[2:]
	}
	q.rest = strings.Join(parts, "/")
	q.resource = parts[0]
	named := len(parts) > 1
	if named {
		q.object = parts[1]
	}
	if len(parts) > 2 {
		q.resource += "/" + parts[2]
	}
	q.verb = verb(r, named)
	return q
}

// verb is the verb by which the API server's rules name the request.
func verb(r *http.Request, named bool) string {
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	switch watch := r.URL.Query().Get("watch"); {
	case watch == "true" || watch == "1":
		return "watch"
	case named:
		return "get"
	}
	return "list"
}

// name is that of the step. The object that stands apart is part of it.
func (q request) name(apart string) string {
	switch {
	case q.resource == "":
		return q.verb + " " + q.rest
	case apart != "" && q.object == apart:
		return q.verb + " " + q.resource + " of " + apart
	}
	return q.verb + " " + q.resource
}

// namespaced are the resources that the components list in all namespaces.
var namespaced = []string{
	"pods", "persistentvolumeclaims", "controllerrevisions", "datavolumes",
	"virtualmachineinstances", "virtualmachineinstancemigrations", "virtualmachines", "virtualmachineinstancereplicasets", "virtualmachinepools", "kubevirts",
}

// within is the path of a request for all namespaces that asks for one only.
func (q request) within(namespace string) string {
	if q.resource == "" || q.namespace != "" || !slices.Contains(namespaced, q.rest) {
		return ""
	}
	return q.root + "/namespaces/" + namespace + "/" + q.rest
}
