package subresource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/scheduler/subresource/frontproxy"
	"github.com/podvisor/podvisor/vmi"
)

// versions are the versions of the API, the preferred one first.
var versions = []string{"v1", "v1alpha3"}

const (
	ofVMs  = "virtualmachines"
	ofVMIs = "virtualmachineinstances"
	expand = "expand-vm-spec"
)

// route is what the path of a request addresses.
type route struct {
	version, namespace, resource, name, subresource string
	// rest are the segments behind the subresource, of portforward only.
	rest []string
}

// parse reads a path. It is false for one that is none of a verb. Only a path whose
// segments are all there is one: what is authorized is what is done.
func parse(path string) (r route, ok bool) {
	s := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if len(s) < 6 || s[0] != "apis" || s[1] != vmi.SubresourceGroup || !slices.Contains(versions, s[2]) || s[3] != "namespaces" || slices.Contains(s, "") {
		return r, false
	}
	r = route{version: s[2], namespace: s[4], resource: s[5]}
	switch s = s[6:]; {
	case r.resource == expand:
		return r, len(s) == 0
	case r.resource != ofVMs && r.resource != ofVMIs || len(s) < 2:
		return r, false
	}
	r.name = s[0]
	if s[1] == "portforward" {
		r.subresource, r.rest = s[1], s[2:]
		return r, true
	}
	r.subresource = strings.Join(s[1:], "/")
	return r, true
}

// attributes are what the user must be allowed.
func (r route) attributes(verb string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{
		Group: vmi.SubresourceGroup, Version: r.version, Namespace: r.namespace, Resource: r.resource, Name: r.name, Subresource: r.subresource, Verb: verb,
	}
}

// request is a request of a verb that its user is allowed.
type request struct {
	*http.Request
	route
	w    http.ResponseWriter
	user frontproxy.User
	// admitted is called when a stream is open: it does not count as a request any
	// more.
	admitted func()
	// options are those of the body, where it is read more than once.
	options *vmi.EvacuateCancelOptions
}

// verb is what is served at a subresource.
type verb struct {
	method string
	// code is the status of success.
	code int
	// do does it. Its answer is sent as JSON. An error of a stream that is open already
	// is [errStreamed].
	do func(s *Server, ctx context.Context, r *request) (answer any, err error)
}

const (
	get = http.MethodGet
	put = http.MethodPut
)

// verbs are what is served, by resource and subresource. What is not there is neither
// listed nor served.
var verbs map[string]map[string]verb

func init() { // the handlers name the table that they are in
	verbs = map[string]map[string]verb{
		expand: {"": {put, 200, (*Server).expandGiven}},
		ofVMs: {
			"start":           {put, 202, (*Server).start},
			"stop":            {put, 202, (*Server).stop},
			"restart":         {put, 202, (*Server).restart},
			"migrate":         {put, 202, (*Server).migrate},
			"expand-spec":     {get, 200, (*Server).expandStored},
			"evacuate/cancel": {put, 200, (*Server).cancelEvacuation},
			"portforward":     {get, 200, (*Server).forward},
		},
		ofVMIs: {
			"console":         {get, 200, (*Server).console},
			"vnc":             {get, 200, (*Server).vnc},
			"vnc/screenshot":  {get, 200, (*Server).screenshot},
			"portforward":     {get, 200, (*Server).forward},
			"pause":           {put, 200, (*Server).pause},
			"unpause":         {put, 200, (*Server).unpause},
			"freeze":          {put, 200, (*Server).freeze},
			"unfreeze":        {put, 200, (*Server).unfreeze},
			"reset":           {put, 200, (*Server).reset},
			"softreboot":      {put, 200, (*Server).softReboot},
			"guestosinfo":     {get, 200, (*Server).guestInfo},
			"userlist":        {get, 200, (*Server).users},
			"filesystemlist":  {get, 200, (*Server).fileSystems},
			"evacuate/cancel": {put, 200, (*Server).cancelEvacuation},
		},
	}
}

// words are the verbs of RBAC by method.
var words = map[string]string{
	http.MethodGet: "get", http.MethodHead: "get", http.MethodPut: "update", http.MethodPost: "create",
	http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// verb answers a request of a verb.
func (s *Server) verb(w http.ResponseWriter, r *http.Request, admitted func()) {
	user, err := s.proxy.Authenticate(r)
	if err != nil {
		s.Logger.Debug("refused a caller", "from", r.RemoteAddr, "path", r.URL.Path, "error", err)
		fail(w, unauthorized(err))
		return
	}
	at, ok := parse(r.URL.Path)
	word := words[r.Method]
	if !ok || word == "" {
		fail(w, missing("the path is not served; kubectl get --raw /apis/%s/v1 lists what is", vmi.SubresourceGroup))
		return
	}
	allowed, reason, err := s.reviewer.Allowed(r.Context(), user, at.attributes(word))
	if err != nil {
		s.Logger.Warn("cannot authorize", "user", user.Name, "path", r.URL.Path, "error", err)
		fail(w, unavailable("cannot ask the API server what the user may: %v; try again", err))
		return
	}
	of := ofVM
	if at.resource == ofVMIs {
		of = ofVMI
	}
	if !allowed {
		if reason == "" {
			reason = "no role allows it"
		}
		fail(w, apierrors.NewForbidden(of, at.name, fmt.Errorf("user %q may not %s %s/%s of %s in namespace %s: %s; ask for a role with it",
			user.Name, word, at.resource, at.subresource, vmi.SubresourceGroup, at.namespace, reason)))
		return
	}
	v, ok := verbs[at.resource][at.subresource]
	switch {
	case !ok:
		fail(w, missing("%s/%s is not served; kubectl get --raw /apis/%s/v1 lists what is", at.resource, at.subresource, vmi.SubresourceGroup))
		return
	case v.method != r.Method:
		w.Header().Set("Allow", v.method)
		fail(w, apierrors.NewMethodNotSupported(of, word))
		return
	}
	answer, err := v.do(s, r.Context(), &request{Request: r, route: at, w: w, user: user, admitted: admitted})
	switch {
	case errors.Is(err, errStreamed):
	case err != nil:
		fail(w, err)
	default:
		write(w, v.code, answer)
	}
}

// mostOfBody is the largest body that is read, in bytes: an object in the API server has
// no more.
const mostOfBody = 1 << 20

// body decodes the body, JSON or YAML, into options. An empty one is none.
func (r *request) body(options any) error {
	b, err := io.ReadAll(http.MaxBytesReader(r.w, r.Body, mostOfBody))
	if err != nil {
		return bad("Can not read Request body, error: %v", err)
	}
	if len(b) == 0 {
		return nil
	}
	if err := yaml.Unmarshal(b, options); err != nil {
		return bad("Can not unmarshal Request body to struct, error: %v", err)
	}
	return nil
}

// dry says that nothing is to be done.
func dry(run []string) (bool, error) {
	switch {
	case len(run) == 0:
		return false, nil
	case len(run) == 1 && run[0] == "All":
		return true, nil
	}
	return false, bad("dryRun: %q is not supported; leave it out, or give [\"All\"]", run)
}
