package subresource

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/vmi/verb"
	"github.com/podvisor/podvisor/scheduler/subresource/frontproxy"
	"github.com/podvisor/podvisor/vmi"
)

// versions are the versions of the API, the preferred one first.
var versions = []string{"v1", "v1alpha3"}

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
	case r.resource == verb.Expand:
		return r, len(s) == 0
	case r.resource != verb.VMs && r.resource != verb.VMIs || len(s) < 2:
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
	// verb is the row of the verb.
	verb verb.Verb
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
	v, ok := verb.Find(at.resource, at.subresource)
	if !ok {
		v.Resource = at.resource
	}
	if !allowed {
		if reason == "" {
			reason = "no role allows it"
		}
		fail(w, apierrors.NewForbidden(v.Of(), at.name, fmt.Errorf("user %q may not %s %s/%s of %s in namespace %s: %s; ask for a role with it",
			user.Name, word, at.resource, at.subresource, vmi.SubresourceGroup, at.namespace, reason)))
		return
	}
	switch {
	case !ok:
		fail(w, missing("%s/%s is not served; kubectl get --raw /apis/%s/v1 lists what is", at.resource, at.subresource, vmi.SubresourceGroup))
		return
	case v.Method != r.Method:
		w.Header().Set("Allow", v.Method)
		fail(w, apierrors.NewMethodNotSupported(v.Of(), word))
		return
	}
	answer, err := s.do(r.Context(), &request{Request: r, route: at, w: w, user: user, admitted: leave, verb: v})
	switch {
	case errors.Is(err, errStreamed):
	case err != nil && v.Words && r.Header.Get("Accept") != runtime.ContentTypeJSON:
		failInWords(w, err)
	case err != nil:
		fail(w, err)
	default:
		write(w, v.Code, answer)
	}
}
