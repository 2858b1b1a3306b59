package fake

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
)

// request is a request for an object, or for all if it has no name.
type request struct {
	*http.Request
	key
	subresource string
	body        []byte
}

// notServed is the reason of an error for a path that the server does not serve.
const notServed metav1.StatusReason = "NotServed"

// unserved is the error for a path that the server does not serve, and what to do about it.
// It is not NotFound, as an API server's is: a test whose program ignores that objects are
// not found would be green although the kind is missing.
func unserved(r *http.Request, what string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Reason: notServed,
		Message: fmt.Sprintf("the fake API server does not serve %s %s: %s", r.Method, r.URL.Path, what),
	}}
}

// giveKind is what to do about a path of a kind that is not served.
const giveKind = "give fake.Serving the definition of the kind"

// parse reads a request for one of the kinds that are served.
func (s *Server) parse(r *http.Request) (request, error) {
	gv, parts, ok := groupVersion(r.URL.Path)
	if !ok {
		return request{}, unserved(r, giveKind)
	}
	q := request{Request: r}
	if len(parts) > 2 && parts[0] == "namespaces" {
		q.namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "")
	q.kind, q.name, q.subresource = s.kinds[gv.WithResource(parts[0])], parts[1], parts[2]
	switch {
	case q.kind == nil:
		return request{}, unserved(r, giveKind)
	case !q.inScope() && q.kind.ClusterScoped:
		return request{}, unserved(r, "objects of the kind "+q.kind.Kind+" are in no namespace")
	case !q.inScope():
		return request{}, unserved(r, "objects of the kind "+q.kind.Kind+" are in a namespace, which the client must have")
	case !q.hasSubresource() || len(parts) > 5:
		return request{}, unserved(r, "the kind "+q.kind.Kind+" has no such subresource")
	}
	var err error
	if q.body, err = io.ReadAll(r.Body); err != nil {
		return request{}, apierrors.NewBadRequest(err.Error())
	}
	if r.Method != http.MethodPatch && len(q.body) > 0 {
		q.body, err = asJSON(q.body, r.Header.Get("Content-Type"))
	}
	return q, err
}

// asJSON is a body as JSON. It is an error if it is in a form that custom resources do not
// have, as protobuf.
func asJSON(body []byte, contentType string) ([]byte, error) {
	kind, _, err := mime.ParseMediaType(cmp.Or(contentType, runtime.ContentTypeJSON))
	switch {
	case err == nil && kind == runtime.ContentTypeJSON:
		return body, nil
	case err == nil && kind == runtime.ContentTypeYAML:
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return body, nil
	}
	return nil, unsupported(contentType, runtime.ContentTypeJSON, runtime.ContentTypeYAML)
}

// unsupported is the error for a body in a form that the server does not read.
func unsupported(contentType string, readable ...string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: fmt.Sprintf("the body of the request was in an unknown format (%s) - accepted media types include: %s", contentType, strings.Join(readable, ", ")),
	}}
}

// strict refuses fields that the kind does not have, if the request asks for that.
func (q request) strict(body []byte) error {
	if q.URL.Query().Get("fieldValidation") != metav1.FieldValidationStrict || q.subresource == "scale" {
		return nil
	}
	// What the Go type cannot hold is stored all the same: there are no schemas.
	unknown, _ := kjson.UnmarshalStrict(body, q.kind.New(), kjson.DisallowUnknownFields)
	if err := errors.Join(unknown...); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: strict decoding error: %v", q.kind.Kind, q.kind.Version, q.kind.Kind, err))
	}
	return nil
}

// groupVersion splits a path into the group and version and what is below.
func groupVersion(path string) (gv schema.GroupVersion, below []string, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 3 && parts[0] == "apis":
		return schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:], true
	case len(parts) > 2 && parts[0] == "api":
		return schema.GroupVersion{Version: parts[1]}, parts[2:], true
	}
	return gv, nil, false
}

// inScope says that the request has a namespace if it needs one, and none if the
// objects are in none.
func (q request) inScope() bool {
	if q.kind.ClusterScoped {
		return q.namespace == ""
	}
	return q.namespace != "" || q.name == ""
}

func (q request) hasSubresource() bool {
	switch q.subresource {
	case "":
		return true
	case "status":
		return q.kind.Status
	case "scale":
		return q.kind.Scale != nil
	}
	return false
}

// dryRun says that nothing is to be stored.
func (q request) dryRun() bool {
	return slices.Contains(q.URL.Query()["dryRun"], metav1.DryRunAll)
}

// manager is the owner of the fields that the request writes.
func (q request) manager() string {
	if m := q.URL.Query().Get("fieldManager"); m != "" {
		return m
	}
	m, _, _ := strings.Cut(q.UserAgent(), "/")
	return m
}

// object decodes the body.
func (q request) object() (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(q.body); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if want := q.kind.GroupVersionKind; q.subresource != "scale" && u.GroupVersionKind() != want {
		return nil, apierrors.NewBadRequest("the object is a " + u.GroupVersionKind().String() + " and not a " + want.String())
	}
	if err := q.strict(q.body); err != nil {
		return nil, err
	}
	if u.GetNamespace() == "" {
		u.SetNamespace(q.namespace)
	}
	if u.GetNamespace() != q.namespace {
		return nil, errNamespace
	}
	return u, nil
}

var errNamespace = apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")

// names says that the object is not the one that the request names, if it is not.
func (q request) names(o *unstructured.Unstructured) error {
	switch {
	case o.GetName() != q.name:
		return apierrors.NewBadRequest("the name of the object (" + o.GetName() + ") does not match the name on the URL (" + q.name + ")")
	case o.GetNamespace() != q.namespace:
		return errNamespace
	}
	return nil
}

// selector says which objects of the kind the request is for.
func (q request) selector() (func(*unstructured.Unstructured) bool, error) {
	l, err := labels.Parse(q.URL.Query().Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	f, err := fields.ParseSelector(q.URL.Query().Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	for _, r := range f.Requirements() {
		if !slices.Contains(q.kind.Selectable, r.Field) && r.Field != "metadata.name" && r.Field != "metadata.namespace" {
			return nil, apierrors.NewBadRequest("field label not supported: " + r.Field)
		}
	}
	return func(o *unstructured.Unstructured) bool {
		values := fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()}
		for _, field := range q.kind.Selectable {
			values[field], _, _ = unstructured.NestedString(o.Object, steps(field)...)
		}
		return (q.namespace == "" || q.namespace == o.GetNamespace()) && l.Matches(labels.Set(o.GetLabels())) && f.Matches(values)
	}, nil
}

// ServeHTTP answers requests for the kinds that are served, at their paths.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if gv, below, ok := groupVersion(r.URL.Path); ok && gv.Group == vmi.SubresourceGroup {
		s.serveVerb(w, r, below)
		return
	}
	if answer, ok := s.discovery(r); ok {
		discover(w, answer)
		return
	}
	q, err := s.parse(r)
	if err != nil {
		fail(w, err)
		return
	}
	if watch, _ := strconv.ParseBool(r.URL.Query().Get("watch")); watch && r.Method == http.MethodGet && q.name == "" {
		s.watch(w, q)
		return
	}
	out, code, err := s.do(q)
	if err != nil {
		fail(w, err)
		return
	}
	respond(w, code, out)
}

// do does what the request asks for, alone.
func (s *Server) do(q request) (any, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	code := http.StatusOK
	var out any
	var err error
	switch verb := q.Method; {
	case verb == http.MethodGet && q.name == "":
		out, err = s.all(q)
	case verb == http.MethodPost && q.name == "":
		code = http.StatusCreated
		out, err = s.post(q)
	case verb == http.MethodDelete && q.name == "":
		out, err = s.deleteAll(q)
	case verb == http.MethodGet:
		out, err = s.shown(q)
	case verb == http.MethodPut:
		out, err = s.update(q)
	case verb == http.MethodPatch && q.Header.Get("Content-Type") == string(types.ApplyPatchType):
		out, code, err = s.apply(q)
	case verb == http.MethodPatch:
		out, err = s.patch(q)
	case verb == http.MethodDelete && q.subresource == "":
		out, err = s.deleteOne(q)
	default:
		err = apierrors.NewMethodNotSupported(q.resource(), strings.ToLower(verb))
	}
	return out, code, err
}

// all lists the objects that are asked for.
func (s *Server) all(q request) (any, error) {
	ok, err := q.selector()
	if err != nil {
		return nil, err
	}
	items := []any{}
	for _, o := range s.list(q.kind, q.namespace) {
		if ok(o) {
			items = append(items, o.Object)
		}
	}
	return map[string]any{
		"apiVersion": q.kind.GroupVersion().String(), "kind": q.kind.Kind + "List", "items": items,
		"metadata": map[string]any{"resourceVersion": strconv.FormatInt(s.version, 10)},
	}, nil
}

// post creates an object. Its status is dropped: the subresource writes it.
func (s *Server) post(q request) (any, error) {
	o, err := q.object()
	if err != nil {
		return nil, err
	}
	if o.GetResourceVersion() != "" {
		return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	return s.add(q, o)
}

// add creates the object.
func (s *Server) add(q request, o *unstructured.Unstructured) (any, error) {
	if q.kind.Status {
		delete(o.Object, "status")
	}
	o.SetUID("")
	o.SetGeneration(0)
	o.SetCreationTimestamp(metav1.Time{})
	o.SetDeletionTimestamp(nil)
	if q.dryRun() {
		scratch := newStore()
		if live := s.objects[keyOf(q.kind, o)]; live != nil {
			scratch.objects[keyOf(q.kind, o)] = live
		}
		err := scratch.create(q.kind, o)
		return o.Object, err
	}
	err := s.create(q.kind, o)
	return o.Object, err
}

func (s *Server) deleteOne(q request) (any, error) {
	live, err := s.get(q.key)
	if err != nil {
		return nil, err
	}
	var opts metav1.DeleteOptions
	if err := q.options(&opts); err != nil {
		return nil, err
	}
	return success(), s.remove(q.key, live, opts)
}

func (s *Server) deleteAll(q request) (any, error) {
	ok, err := q.selector()
	if err != nil {
		return nil, err
	}
	var opts metav1.DeleteOptions
	if err := q.options(&opts); err != nil {
		return nil, err
	}
	for _, o := range s.list(q.kind, q.namespace) {
		if ok(o) {
			err = errors.Join(err, s.remove(keyOf(q.kind, o), o, opts))
		}
	}
	return success(), err
}

// success is the answer to a deletion.
func success() metav1.Status {
	return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}
}

// options decodes the body of a deletion, which may be empty.
func (q request) options(opts *metav1.DeleteOptions) error {
	if q.dryRun() {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	if len(q.body) == 0 {
		return nil
	}
	if err := json.Unmarshal(q.body, opts); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// discover answers a question for what is served.
func discover(w http.ResponseWriter, answer any) {
	switch answer.(type) {
	case nil:
		fail(w, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "", 0, true))
		return
	case apidiscoveryv2.APIGroupDiscoveryList:
		w.Header().Set("Content-Type", aggregated)
	}
	respond(w, http.StatusOK, answer)
}

func respond(w http.ResponseWriter, code int, v any) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	}
	w.WriteHeader(code)
	// An error means that the client is gone.
	_ = json.NewEncoder(w).Encode(v)
}

// fail answers with the error as a Status.
func fail(w http.ResponseWriter, err error) {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	respond(w, int(status.Code), status)
}
