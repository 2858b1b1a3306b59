package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/podvisor/podvisor/vmi"
	decoder "github.com/podvisor/podvisor/vmi/decode"
	"github.com/podvisor/podvisor/vmi/instancetype"
	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/validate"
)

// infer has the VM of the request name what the claims of its volumes do. It returns the VM
// as it was sent, or nil if it is the same, and the refusal if there is one.
func (h Webhooks) infer(ctx context.Context, k kinds.Kind, c kinds.Cluster, req *admissionv1.AdmissionRequest) ([]byte, *admissionv1.AdmissionResponse) {
	if h.Lookup == nil || !bytes.Contains(req.Object.Raw, []byte(`"inferFromVolume"`)) || own(req) {
		return nil, nil
	}
	v := &vmi.VirtualMachine{}
	if decoder.Into(req.Object.Raw, v) != nil || v.DeletionTimestamp != nil {
		return nil, nil
	}
	again(v, req.OldObject.Raw)
	byVolume := func(r instancetype.Reference) bool { return r.Volume != "" }
	if !slices.ContainsFunc(instancetype.References(v), byVolume) || len(validate.References(v)) > 0 {
		return nil, nil // what is wrong with it is said with all other faults
	}
	out, faults, err := h.Lookup(ctx).Infer(req.Namespace, v)
	if err == nil && len(faults) == 0 {
		var raw []byte
		if raw, err = renamed(req.Object.Raw, v, out); err == nil {
			sent := req.Object.Raw
			req.Object.Raw = raw
			return sent, nil
		}
	}
	if err != nil {
		return nil, refused(apierrors.NewServiceUnavailable("take the names of an instance type and a preference from a volume: " + err.Error()))
	}
	faults = append(faults, others(k, c, req, faults)...)
	return nil, refused(apierrors.NewInvalid(k.GroupKind(), nameOf(req), validate.First(faults)))
}

// again leaves out the names that were taken before, where the manifest that names the volume
// is applied again.
func again(v *vmi.VirtualMachine, before []byte) {
	var old matched
	if len(before) == 0 || json.Unmarshal(before, &old) != nil {
		return
	}
	if is, was := v.Spec.Instancetype, old.Spec.Instancetype; is != nil && was != nil && is.InferFromVolume != "" && is.Name == was.Name && is.Kind == was.Kind {
		is.Name, is.Kind = "", ""
	}
	if is, was := v.Spec.Preference, old.Spec.Preference; is != nil && was != nil && is.InferFromVolume != "" && is.Name == was.Name && is.Kind == was.Kind {
		is.Name, is.Kind = "", ""
	}
}

// own reports whether the request is one of virt-controller, which may not change what a VM
// names (policies/metadata.yaml). By its name in any namespace: for others it is a request to
// name nothing.
func own(req *admissionv1.AdmissionRequest) bool {
	return strings.HasSuffix(req.UserInfo.Username, ":virt-controller")
}

// renamed is the object, which is v, with what out names in its place.
func renamed(object []byte, v, out *vmi.VirtualMachine) ([]byte, error) {
	raw, err := tree(object)
	if err != nil {
		return nil, err
	}
	for _, r := range instancetype.References(v) {
		if r.Volume != "" {
			unstructured.RemoveNestedField(raw, "spec", string(r.Part))
		}
	}
	for _, r := range instancetype.References(out) {
		names := map[string]any{"name": r.Name}
		if r.Kind != "" {
			names["kind"] = r.Kind
		}
		if spec, ok := raw["spec"].(map[string]any); ok && spec[string(r.Part)] == nil {
			spec[string(r.Part)] = names
		}
	}
	if out.Spec.Template.Spec.Domain.Memory == nil {
		unstructured.RemoveNestedField(raw, "spec", "template", "spec", "domain", "memory")
	}
	return json.Marshal(raw)
}

// matched is what a VM names, of the object as it is sent.
type matched struct {
	Spec struct {
		Instancetype *vmi.InstancetypeMatcher
		Preference   *vmi.PreferenceMatcher
	}
	Status struct {
		InstancetypeRef, PreferenceRef *vmi.InstancetypeStatusRef
	}
}

// matchedBy is what the VM of the request names. It has the status of before: who changes a VM
// does not change its status. False: it cannot be decoded.
func matchedBy(req *admissionv1.AdmissionRequest) (*vmi.VirtualMachine, bool) {
	var v, old matched
	if json.Unmarshal(req.Object.Raw, &v) != nil || len(req.OldObject.Raw) > 0 && json.Unmarshal(req.OldObject.Raw, &old) != nil {
		return nil, false
	}
	is := &vmi.VirtualMachine{}
	is.Spec.Instancetype, is.Spec.Preference = v.Spec.Instancetype, v.Spec.Preference
	is.Status.InstancetypeRef, is.Status.PreferenceRef = old.Status.InstancetypeRef, old.Status.PreferenceRef
	return is, true
}

// name gives the cluster what the VM of the request names. What cannot be found is left out:
// the VM is judged without it, and does not start.
func (h Webhooks) name(ctx context.Context, c *kinds.Cluster, req *admissionv1.AdmissionRequest) {
	v, ok := matchedBy(req)
	if !ok {
		return
	}
	refs := instancetype.References(v)
	if len(refs) == 0 {
		return
	}
	found, err := lookup(ctx, h.Lookup).Find(req.Namespace, refs)
	if err != nil && h.Logger != nil {
		h.Logger.Warn("judge a VM without what it names", "vm", req.Namespace+"/"+nameOf(req), "err", err)
	}
	c.Instancetype, c.Preference = instancetype.SpecsOf(found)
}

// expand has the VM of the request say itself what it names, if the policy asks for that and
// all of it is known. It returns the VM as it was before, or nil if it is the same. What is
// wrong with such a VM is said of the VM as it is.
//
// It is done where the VM is written, by the right of who writes it: virt-controller may not
// change templates, which name the Secrets and disks that a guest reads.
func expand(policy vmi.InstancetypeReferencePolicy, c *kinds.Cluster, req *admissionv1.AdmissionRequest) []byte {
	if policy == "" || own(req) || c.Instancetype == nil && c.Preference == nil {
		return nil
	}
	v := &vmi.VirtualMachine{}
	names, ok := matchedBy(req)
	if !ok || decoder.Into(req.Object.Raw, v) != nil || v.DeletionTimestamp != nil || v.Spec.Template == nil {
		return nil
	}
	used := func(r *vmi.InstancetypeStatusRef) bool { return r != nil && r.ControllerRevisionRef != nil }
	if policy == vmi.ReferencePolicyExpand && (used(names.Status.InstancetypeRef) || used(names.Status.PreferenceRef)) ||
		(v.Spec.Instancetype != nil) != (c.Instancetype != nil) || (v.Spec.Preference != nil) != (c.Preference != nil) {
		return nil
	}
	out, faults := instancetype.Check(instancetype.Complete(v, c.Preference), c.Instancetype, c.Preference, c.Defaults)
	if len(faults) > 0 {
		return nil
	}
	raw, err := tree(req.Object.Raw)
	if err != nil {
		return nil
	}
	is, err := treeOf(out)
	if err != nil {
		return nil
	}
	spec, _ := raw["spec"].(map[string]any)
	to, _ := is["spec"].(map[string]any)
	for _, part := range []string{"instancetype", "preference", "template", "dataVolumeTemplates"} {
		delete(spec, part)
		if to[part] != nil {
			spec[part] = to[part]
		}
	}
	expanded, err := json.Marshal(raw)
	if err != nil {
		return nil
	}
	sent := req.Object.Raw
	req.Object.Raw, c.Instancetype, c.Preference = expanded, nil, nil
	return sent
}
