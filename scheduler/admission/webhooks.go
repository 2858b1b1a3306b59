package admission

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/internal/jsonpatch"
	"github.com/podvisor/podvisor/internal/vmi/bounds"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/instancetype"
	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/validate"
)

// The paths of the webhooks.
const (
	// DefaultsPath is the mutating webhook.
	DefaultsPath = "/admission/defaults"
	// ValidationPath is the validating webhook.
	ValidationPath = "/admission/validation"
	// EvictionPath is where the validating webhook for the evictions of pods is.
	EvictionPath = "/admission/evictions"
	// MigrationPath is where the validating webhook for the migrations is that are created.
	MigrationPath = "/admission/migration-create-validator"
	// OwnedPath is where the validating webhook for the VMIs is that virt-controller
	// creates.
	OwnedPath = "/admission/owned"
	// UninstallPath is where the validating webhooks for the deletion of Podvisor itself
	// are.
	UninstallPath = "/admission/uninstall"
)

// maxReview is the size of the largest review that is read: the object before
// and after, each of which the API server limits to 3 MiB, and room for the rest.
const maxReview = 2*(3<<20) + 256<<10

// Webhooks answers admission reviews at [DefaultsPath] and [ValidationPath], for
// the kinds of the table in vmi/kinds. Objects of other kinds are allowed. The zero
// value is ready to use.
type Webhooks struct {
	// Settings returns the configuration of the cluster that is in force. Nil: the
	// default configuration.
	Settings func() config.Config
	// KubeVirts returns all KubeVirts of the cluster, or none while they are not
	// known. Nil: none, and a second KubeVirt is not refused.
	KubeVirts func() []*vmi.KubeVirt
	// Lookup reads the instance types and the preferences that VMs name. Nil: none is
	// known, and VMs are judged without them.
	Lookup func(context.Context) instancetype.Lookup
	// Logger logs each object that is refused or cannot be decoded, and what VMs name
	// that cannot be read. Nil: nothing is logged.
	Logger *slog.Logger
}

// webhook is what is answered at one path.
type webhook struct {
	// answer is the answer to a request for an object of the kind. The object as it was
	// sent is given if another one takes its place in the request.
	answer func(k kinds.Kind, c kinds.Cluster, req *admissionv1.AdmissionRequest, sent []byte) (*admissionv1.AdmissionResponse, error)
	// unreadable is the answer to a request with an object that cannot be decoded.
	unreadable func(*admissionv1.AdmissionRequest, error) *admissionv1.AdmissionResponse
}

// webhooks are by path. An object that cannot be completed is allowed: the schema,
// which the API server checks next, reports what is wrong with it. What passes the
// schema and still cannot be decoded must not be stored: every reader would fail.
var webhooks = map[string]webhook{
	DefaultsPath: {answerDefaults, func(*admissionv1.AdmissionRequest, error) *admissionv1.AdmissionResponse { return allowed() }},
	ValidationPath: {answerValidation, func(req *admissionv1.AdmissionRequest, err error) *admissionv1.AdmissionResponse {
		return refused(apierrors.NewBadRequest(fmt.Sprintf("decode %s %s: %v", req.Kind.Kind, nameOf(req), err)))
	}},
}

// ServeHTTP answers one review.
func (h Webhooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	hook, ok := webhooks[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	answer(w, r, h.Logger, func(ctx context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return h.respond(ctx, hook, req)
	})
}

// responder answers a request.
type responder func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse

// answer reads the review of the request and writes the answer of respond.
func answer(w http.ResponseWriter, r *http.Request, log *slog.Logger, respond responder) {
	body, err := read(w, r)
	if err != nil {
		http.Error(w, fmt.Sprintf("read the admission review: %v", err), http.StatusBadRequest)
		return
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil {
		http.Error(w, fmt.Sprintf("decode the admission review: %v", err), http.StatusBadRequest)
		return
	}
	req := review.Request
	if req == nil {
		http.Error(w, "decode the admission review: it has no request", http.StatusBadRequest)
		return
	}
	response := respond(r.Context(), req)
	if !response.Allowed && log != nil && log.Enabled(r.Context(), slog.LevelDebug) {
		log.Debug("refused an object", "kind", req.Kind.Kind, "object", req.Namespace+"/"+nameOf(req), "user", req.UserInfo.Username, "message", response.Result.Message)
	}
	response.UID = req.UID
	review.Response, review.Request = response, nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// read reads the body, without a copy of any part of it if its size is known.
func read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	limited := http.MaxBytesReader(w, r.Body, maxReview)
	if r.ContentLength < 0 || r.ContentLength > maxReview {
		return io.ReadAll(limited)
	}
	body := make([]byte, r.ContentLength)
	_, err := io.ReadFull(limited, body)
	return body, err
}

// respond answers unless the request has ended. It does not end within: what is in the
// bounds takes no longer than some hundred milliseconds.
func (h Webhooks) respond(ctx context.Context, hook webhook, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	k, ok := kinds.Find(schema.GroupKind{Group: req.Kind.Group, Kind: req.Kind.Kind})
	if !ok || ctx.Err() != nil {
		return allowed()
	}
	if fault := bounds.Fault(k.Kind, req.Object.Raw); fault != nil {
		return refused(apierrors.NewInvalid(k.GroupKind(), req.Name, field.ErrorList{fault}))
	}
	if bounds.Fault(k.Kind, req.OldObject.Raw) != nil {
		req.OldObject.Raw = nil // it is corrected: as an object that is created
	}
	in := inForce(h.Settings)
	// Labels that are reserved are refused by a policy, which knows the user's token.
	c := kinds.Cluster{Defaults: in.Defaults, Limits: in.Limits, By: validate.User{Kind: validate.Controller}}
	// The API server checks it after the one webhook, and before the other.
	c.Limits.SchemaFollows = true
	if h.KubeVirts != nil {
		c.KubeVirts = h.KubeVirts()
	}
	var sent []byte
	if k.GroupVersionKind == vmi.VirtualMachines.GroupVersionKind {
		var refusal *admissionv1.AdmissionResponse
		if sent, refusal = h.infer(ctx, k, c, req); refusal != nil {
			return refusal
		}
		h.name(ctx, &c, req)
		if was := expand(in.ReferencePolicy, &c, req); was != nil && sent == nil {
			sent = was
		}
	}
	response, err := hook.answer(k, c, req, sent)
	if err != nil {
		return hook.unreadable(req, err)
	}
	return response
}

// inForce is the configuration that settings returns, or the default.
func inForce(settings func() config.Config) config.Config {
	if settings == nil {
		return config.Config{}
	}
	return settings()
}

func allowed() *admissionv1.AdmissionResponse { return &admissionv1.AdmissionResponse{Allowed: true} }

func refused(err *apierrors.StatusError) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &err.ErrStatus}
}

// answerDefaults answers with a patch. An object that is created is validated here, so that
// its creation costs one review. A change of a spec that cannot be changed is refused here,
// with its fields: the schema, which is checked next, knows only that there is one.
func answerDefaults(k kinds.Kind, c kinds.Cluster, req *admissionv1.AdmissionRequest, sent []byte) (*admissionv1.AdmissionResponse, error) {
	raw, err := tree(req.Object.Raw)
	if err != nil {
		return nil, err
	}
	if m, ok := raw["metadata"].(map[string]any); ok {
		delete(m, "managedFields") // see decode
	}
	was := former(k, raw)
	faults := append(was, unserved(k, raw)...)
	if len(was) == 0 && len(faults) > 0 {
		faults = append(faults, others(k, c, req, faults)...)
	}
	if len(faults) > 0 {
		return refused(apierrors.NewInvalid(k.GroupKind(), nameOf(req), validate.First(faults))), nil
	}
	v, done, faults, err := complete(k, c, req.Object.Raw, req.OldObject.Raw, raw)
	switch {
	case err != nil:
		return nil, err
	case len(faults) > 0:
		return refused(apierrors.NewInvalid(k.GroupKind(), nameOf(req), validate.First(faults))), nil
	}
	out := allowed()
	if req.Operation == admissionv1.Create {
		out.Warnings = warnings(k, v, req)
	}
	if sent != nil {
		if raw, err = tree(sent); err != nil {
			return nil, err
		}
	}
	if changes := difference(raw, done); len(changes) > 0 {
		out.PatchType = new(admissionv1.PatchTypeJSONPatch)
		if out.Patch, err = json.Marshal(changes); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// others is what else is wrong with the object, which the webhook that validates is not
// asked for any more, without what may follow from the faults that are known.
func others(k kinds.Kind, c kinds.Cluster, req *admissionv1.AdmissionRequest, known field.ErrorList) field.ErrorList {
	_, all, err := check(k, c, req.Object.Raw, req.OldObject.Raw)
	if err != nil {
		return nil // it is said when the rest is correct
	}
	return slices.DeleteFunc(all, func(e *field.Error) bool {
		return slices.ContainsFunc(known, func(f *field.Error) bool { return validate.Follows(e.Field, f.Field) })
	})
}

// difference is the patch that makes the second object of the first. It replaces
// the spec and each part of the metadata as a whole; nothing else changes.
func difference(from, to map[string]any) []jsonpatch.Operation {
	var out []jsonpatch.Operation
	if !reflect.DeepEqual(from["spec"], to["spec"]) {
		out = append(out, jsonpatch.Add("/spec", to["spec"]))
	}
	was, _ := from["metadata"].(map[string]any)
	is, _ := to["metadata"].(map[string]any)
	for _, part := range []string{"annotations", "finalizers", "labels"} {
		if !reflect.DeepEqual(was[part], is[part]) {
			out = append(out, jsonpatch.Add("/metadata/"+part, is[part]))
		}
	}
	return out
}

// answerValidation answers with all faults, in the form that the API server gives
// to those of its own kinds.
func answerValidation(k kinds.Kind, c kinds.Cluster, req *admissionv1.AdmissionRequest, _ []byte) (*admissionv1.AdmissionResponse, error) {
	v, faults, err := check(k, c, req.Object.Raw, req.OldObject.Raw)
	if err != nil {
		return nil, err
	}
	if len(faults) == 0 {
		return &admissionv1.AdmissionResponse{Allowed: true, Warnings: warnings(k, v, req)}, nil
	}
	return refused(apierrors.NewInvalid(k.GroupKind(), nameOf(req), validate.First(faults))), nil
}

// nameOf is the object's name, or what its name will begin with.
func nameOf(req *admissionv1.AdmissionRequest) string {
	if req.Name != "" {
		return req.Name
	}
	var o struct {
		Metadata struct{ Name, GenerateName string }
	}
	if json.Unmarshal(req.Object.Raw, &o) != nil {
		return ""
	}
	return cmp.Or(o.Metadata.Name, o.Metadata.GenerateName)
}

// Handlers are the webhooks by their paths, with one limit for the memory of both.
func (h Webhooks) Handlers() map[string]http.Handler {
	limited := new(gate).Limit(h)
	return map[string]http.Handler{DefaultsPath: limited, ValidationPath: limited}
}
