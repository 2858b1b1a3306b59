package fake

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
)

// maxOptions is the size of the options of a verb at most, in bytes.
const maxOptions = 1 << 20

// call is a call of a verb.
type call struct {
	server          *Server
	request         *http.Request
	namespace, name string
	// rest is what follows the verb in the path.
	rest []string
	body []byte
}

// reply is the answer to a call. An empty body has no type.
type reply struct {
	code  int
	kind  string
	bytes []byte
}

// verb is a verb that is served.
type verb struct {
	method string
	// do answers a call, while the store is locked. Nil for a stream.
	do func(*call) (reply, error)
	// open checks whether a stream may be opened, and says how it behaves, while the store
	// is locked.
	open func(*call) (guest, error)
}

// verbs are the verbs by their resource and their path below the object.
var verbs = map[string]verb{
	"expand-vm-spec ": {method: http.MethodPut, do: expandGiven},

	"virtualmachines start":           {method: http.MethodPut, do: start},
	"virtualmachines stop":            {method: http.MethodPut, do: stop},
	"virtualmachines restart":         {method: http.MethodPut, do: restart},
	"virtualmachines migrate":         {method: http.MethodPut, do: migrate},
	"virtualmachines expand-spec":     {method: http.MethodGet, do: expand},
	"virtualmachines evacuate/cancel": {method: http.MethodPut, do: cancelEvacuationOfVM},
	"virtualmachines portforward":     {method: http.MethodGet, open: forwardVM},

	"virtualmachineinstances pause":           {method: http.MethodPut, do: pause},
	"virtualmachineinstances unpause":         {method: http.MethodPut, do: unpause},
	"virtualmachineinstances softreboot":      {method: http.MethodPut, do: softReboot},
	"virtualmachineinstances reset":           {method: http.MethodPut, do: reset},
	"virtualmachineinstances freeze":          {method: http.MethodPut, do: freeze},
	"virtualmachineinstances unfreeze":        {method: http.MethodPut, do: unfreeze},
	"virtualmachineinstances evacuate/cancel": {method: http.MethodPut, do: cancelEvacuationOfVMI},
	"virtualmachineinstances guestosinfo":     {method: http.MethodGet, do: guestInfo},
	"virtualmachineinstances userlist":        {method: http.MethodGet, do: users},
	"virtualmachineinstances filesystemlist":  {method: http.MethodGet, do: fileSystems},
	"virtualmachineinstances vnc/screenshot":  {method: http.MethodGet, do: screenshot},
	"virtualmachineinstances console":         {method: http.MethodGet, open: console},
	"virtualmachineinstances vnc":             {method: http.MethodGet, open: screen},
	"virtualmachineinstances portforward":     {method: http.MethodGet, open: forwardVMI},
}

// parseVerb finds the verb of the path below the group and version.
func (s *Server) parseVerb(r *http.Request, below []string) (*call, verb, error) {
	notFound := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource",
	}}
	if len(below) == 3 && below[0] == "namespaces" && below[2] == "expand-vm-spec" {
		below = append(slices.Clone(below), "", "")
	}
	if len(below) < 5 || below[0] != "namespaces" {
		return nil, verb{}, notFound
	}
	c := &call{server: s, request: r, namespace: below[1], name: below[3]}
	path := below[4:]
	v, ok := verbs[below[2]+" "+strings.Join(path, "/")]
	if !ok && path[0] == "portforward" && len(path) <= 3 {
		v, ok = verbs[below[2]+" "+path[0]]
		c.rest = path[1:]
	}
	switch {
	case !ok:
		return nil, verb{}, notFound
	case r.Method != v.method:
		return nil, verb{}, apierrors.NewMethodNotSupported(schema.GroupResource{Group: vmi.SubresourceGroup, Resource: below[2] + "/" + path[0]}, strings.ToLower(r.Method))
	}
	var err error
	if c.body, err = io.ReadAll(io.LimitReader(r.Body, maxOptions)); err != nil {
		return nil, verb{}, apierrors.NewBadRequest(err.Error())
	}
	return c, v, nil
}

// serveVerb answers a call.
func (s *Server) serveVerb(w http.ResponseWriter, r *http.Request, below []string) {
	c, v, err := s.parseVerb(r, below)
	switch {
	case err != nil:
		fail(w, err)
	case v.open != nil:
		s.serveStream(w, c, v)
	default:
		s.mu.Lock()
		out, err := v.do(c)
		s.mu.Unlock()
		if err != nil {
			fail(w, err)
			return
		}
		if out.kind != "" {
			w.Header().Set("Content-Type", out.kind)
		}
		w.WriteHeader(out.code)
		_, _ = w.Write(out.bytes)
	}
}

// options decodes the options of the call, which may be missing.
func (c *call) options(into any) error {
	if len(c.body) == 0 {
		return nil
	}
	if err := yaml.Unmarshal(c.body, into); err != nil {
		return apierrors.NewBadRequest("Can not unmarshal Request body to struct, error: " + err.Error())
	}
	return nil
}

// object reads the object of the kind that the call names, as it is stored and into o.
func (c *call) object(kind vmi.Definition, o vmi.Object) (key, *unstructured.Unstructured, error) {
	k := key{c.server.kinds[kind.Resource()], c.namespace, c.name}
	live, err := c.server.get(k)
	if err != nil {
		return key{}, nil, apierrors.NewNotFound(singular(kind), c.name)
	}
	return k, live, runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, o)
}

// vm is the VM that the call names.
func (c *call) vm() (*vmi.VirtualMachine, error) {
	o := &vmi.VirtualMachine{}
	_, _, err := c.object(vmi.VirtualMachines.Definition, o)
	return o, err
}

// vmi is the VMI that the call names.
func (c *call) vmi() (*vmi.VirtualMachineInstance, error) {
	o := &vmi.VirtualMachineInstance{}
	_, _, err := c.object(vmi.VirtualMachineInstances.Definition, o)
	return o, err
}

// set writes the field of the object that the call names, or removes it if the value is
// nil.
func (c *call) set(kind vmi.Definition, dryRun []string, value any, path ...string) error {
	k, live, err := c.object(kind, kind.New())
	if err != nil {
		return err
	}
	o := live.DeepCopy()
	if value == nil {
		unstructured.RemoveNestedField(o.Object, path...)
	} else {
		plain, err := encoded(value)
		if err == nil {
			err = unstructured.SetNestedField(o.Object, plain, path...)
		}
		if err != nil {
			return err
		}
	}
	part := ""
	if path[0] == "status" {
		part = "status"
	}
	_, err = c.server.replace(k, part, live, o, slices.Contains(dryRun, metav1.DryRunAll))
	return err
}

// encoded is the value as the store has it: with whole numbers as int64.
func encoded(value any) (any, error) {
	b, err := json.Marshal(map[string]any{"value": value})
	if err != nil {
		return nil, err
	}
	var out map[string]any
	err = utiljson.Unmarshal(b, &out)
	return out["value"], err
}

// jsonReply answers with the value.
func jsonReply(value any) (reply, error) {
	b, err := json.Marshal(value)
	return reply{http.StatusOK, runtime.ContentTypeJSON, b}, err
}

// singular is the resource in the errors of the verbs.
func singular(kind vmi.Definition) schema.GroupResource {
	return schema.GroupResource{Group: kind.Group, Resource: strings.ToLower(kind.Kind)}
}

// conflict is the error of a VM or VMI that is in the wrong state for the verb.
func (c *call) conflict(kind vmi.Definition, words string) error {
	return apierrors.NewConflict(singular(kind), c.name, errors.New(words))
}
