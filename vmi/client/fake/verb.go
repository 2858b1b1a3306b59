package fake

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/vmi/verb"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/instancetype"
)

// call is a call of a verb, and what it is decided on.
type call struct {
	verb.Observed
	server  *Server
	request *http.Request
	verb    verb.Verb
}

// parseVerb finds the verb of the path below the group and version.
func (s *Server) parseVerb(r *http.Request, below []string) (*call, error) {
	if len(below) == 3 && below[2] == verb.Expand {
		below = append(slices.Clone(below), "", "")
	}
	if len(below) < 5 || below[0] != "namespaces" {
		return nil, unserved(r, "verbs are called of an object in a namespace")
	}
	c := &call{server: s, request: r, Observed: verb.Observed{Namespace: below[1], Name: below[3]}}
	var ok bool
	if c.verb, ok = verb.Find(below[2], strings.Join(below[4:], "/")); !ok {
		c.verb, ok = verb.Find(below[2], below[4])
		c.Tail = below[5:]
	}
	switch {
	case !ok || len(c.Tail) > 0 && c.verb.Tail == "":
		return nil, unserved(r, "there is no such verb")
	case r.Method != c.verb.Method:
		return nil, apierrors.NewMethodNotSupported(schema.GroupResource{Group: vmi.SubresourceGroup, Resource: c.verb.Path()}, strings.ToLower(r.Method))
	}
	c.Keep, _ = strconv.ParseBool(r.URL.Query().Get("preserveSession"))
	var err error
	c.Body, err = io.ReadAll(io.LimitReader(r.Body, int64(c.verb.Body)+1))
	if err == nil && c.verb.Body > 0 && len(c.Body) > c.verb.Body {
		err = &http.MaxBytesError{Limit: int64(c.verb.Body)}
	}
	if err != nil {
		return nil, apierrors.NewBadRequest("Can not read Request body, error: " + err.Error())
	}
	return c, nil
}

// serveVerb answers a call.
func (s *Server) serveVerb(w http.ResponseWriter, r *http.Request, below []string) {
	c, err := s.parseVerb(r, below)
	if err != nil {
		fail(w, err)
		return
	}
	s.mu.Lock()
	plan, answer, err := c.do()
	s.mu.Unlock()
	switch {
	case err != nil:
		fail(w, err)
	case plan.Stream != nil && plan.Stream.Name != verb.Screenshot:
		s.serveStream(w, c, *plan.Stream)
	default:
		c.reply(w, answer)
	}
}

// reply answers with JSON, with a picture, or with nothing.
func (c *call) reply(w http.ResponseWriter, answer any) {
	b, isPicture := answer.(picture)
	switch {
	case isPicture:
		w.Header().Set("Content-Type", "image/png")
	case answer != nil:
		var err error
		if b, err = json.Marshal(answer); err != nil {
			fail(w, err)
			return
		}
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	}
	w.WriteHeader(c.verb.Code)
	_, _ = w.Write(b)
}

// do decides, and does what the plan says but for streams, while the store is locked.
func (c *call) do() (verb.Plan, any, error) {
	c.VM, c.VMI = &vmi.VirtualMachine{}, &vmi.VirtualMachineInstance{}
	if found, err := c.read(vmi.VirtualMachines.Definition, c.VM); err != nil {
		return verb.Plan{}, nil, err
	} else if !found || !c.verb.Needs(verb.VM) {
		c.VM = nil
	}
	if found, err := c.read(vmi.VirtualMachineInstances.Definition, c.VMI); err != nil {
		return verb.Plan{}, nil, err
	} else if !found || !c.verb.Needs(verb.VMI) {
		c.VMI = nil
	}
	c.Lookup = instancetype.Nothing() // of revisions: they are not served
	c.Lookup.Object = c.named
	plan, err := c.verb.Decide(c.Observed)
	if err != nil {
		return plan, nil, err
	}
	for _, p := range plan.Patches {
		if err := c.patch(p); err != nil {
			return plan, nil, err
		}
	}
	answer := plan.Answer
	switch {
	case plan.Migration != nil:
		err = verb.NotCreated(c.create(plan.Migration, plan.DryRun))
	case plan.Call != nil:
		answer, err = c.play()
	case plan.Stream != nil && plan.Stream.Name == verb.Screenshot:
		answer, err = screenshot()
	}
	return plan, answer, err
}

// create creates the migration, complete as the webhooks would leave it.
func (c *call) create(m *vmi.VirtualMachineInstanceMigration, dryRun []string) error {
	o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(defaults.Migration(m))
	if err != nil {
		return err
	}
	kind := c.key(vmi.VirtualMachineInstanceMigrations.Definition).kind
	if kind == nil {
		return unserved(c.request, "the kind of what it creates is not served: "+giveKind)
	}
	r := &http.Request{URL: &url.URL{RawQuery: url.Values{"dryRun": dryRun}.Encode()}}
	_, err = c.server.add(request{Request: r, key: key{kind: kind, namespace: c.Namespace}}, &unstructured.Unstructured{Object: o})
	return err
}

// key is the key of the object of the kind that the call names.
func (c *call) key(kind vmi.Definition) key {
	return key{c.server.kinds[kind.Resource()], c.Namespace, c.Name}
}

// read reads the object of the kind that the call names into o, if there is one.
func (c *call) read(kind vmi.Definition, o vmi.Object) (found bool, err error) {
	live, err := c.server.get(c.key(kind))
	if err != nil {
		return false, nil //nolint:nilerr // there is none
	}
	return true, runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, o)
}

// named reads an instance type or a preference, if there is one.
func (c *call) named(d vmi.Definition, namespace, name string) (vmi.Object, error) {
	live, err := c.server.get(key{c.server.kinds[d.Resource()], namespace, name})
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // there is none
	}
	o := d.New()
	return o, runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, o)
}

// patch patches the object that the call names.
func (c *call) patch(p verb.Patch) error {
	body, err := p.JSON(p.Operations)
	if err != nil {
		return err
	}
	kind := vmi.VirtualMachines.Definition
	if p.Of == verb.OfVMI {
		kind = vmi.VirtualMachineInstances.Definition
	}
	r := &http.Request{
		Method: http.MethodPatch, Header: http.Header{"Content-Type": {string(types.JSONPatchType)}},
		URL:  &url.URL{RawQuery: url.Values{"dryRun": p.DryRun, "fieldManager": {"virt-controller"}}.Encode()},
		Body: io.NopCloser(bytes.NewReader(body)),
	}
	_, err = c.server.patch(request{Request: r, key: c.key(kind), subresource: p.Subresource, body: body})
	return err
}
