package subresource

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/scheduler/subresource/frontproxy"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/bounds"
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
func (s *Server) verb(w http.ResponseWriter, r *http.Request) {
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
	leave, err := s.requests.take(types.NamespacedName{Namespace: at.namespace})
	if err != nil {
		w.Header().Set("Retry-After", "1")
		fail(w, err)
		return
	}
	defer leave()
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
	answer, err := v.do(s, r.Context(), &request{Request: r, route: at, w: w, user: user, admitted: leave})
	switch {
	case errors.Is(err, errStreamed):
	case errors.As(err, new(inWords)):
		failInWords(w, err)
	case err != nil:
		fail(w, err)
	default:
		write(w, v.code, answer)
	}
}

// mostOfOptions is the largest body with options that is read, in bytes.
const mostOfOptions = 8 << 10

// body decodes the body, JSON or YAML, into options. An empty one is none. YAML has no
// aliases: a body of some KiB could stand for gigabytes.
func (r *request) body(options any) error {
	b, err := io.ReadAll(http.MaxBytesReader(r.w, r.Body, mostOfOptions))
	if err != nil {
		return bad("Can not read Request body, error: %v", err)
	}
	if len(bytes.TrimSpace(b)) == 0 || json.Unmarshal(b, options) == nil {
		return nil
	}
	if bytes.ContainsAny(b, "&*") {
		err = errors.New("it is no JSON of the options, and YAML is read without the characters & and *")
	} else {
		err = yaml.Unmarshal(b, options)
	}
	if err != nil {
		return bad("Can not unmarshal Request body to struct, error: %v", err)
	}
	return nil
}

// object reads the body, which must be the JSON of an object of the kind, and decodes it.
// leave is to be called when the object is not used any more.
func (s *Server) object(ctx context.Context, r *request, kind string, into any) (leave func(), err error) {
	b, err := io.ReadAll(http.MaxBytesReader(r.w, r.Body, bounds.MaxBytes))
	if err != nil {
		return nil, bad("Can not read Request body, error: %v", err)
	}
	leave = func() {}
	if len(b) > smallObject {
		select {
		case s.large <- struct{}{}:
			leave = func() { <-s.large }
		case <-ctx.Done():
			return nil, unavailable("too many large objects are read; try again")
		}
	}
	if fault := bounds.Fault(kind, b); fault != nil {
		err = fault
	} else {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		leave()
		return nil, bad("Object is not a valid %s: %v", kind, err)
	}
	return leave, nil
}

// smallObject is the size of an object that does not wait for others, in bytes.
const smallObject = 32 << 10

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
