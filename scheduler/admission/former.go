package admission

import (
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/served"
)

// former says what to write instead of what the object has of before kubevirt.io/v1, all
// at once. The schema, which the API server checks next, refuses it too, but says nothing
// of it where another field has a wrong type or is missing.
func former(k kinds.Kind, req *admissionv1.AdmissionRequest, object map[string]any) field.ErrorList {
	var out field.ErrorList
	if asked := req.RequestKind; asked != nil {
		version := schema.GroupVersion{Group: asked.Group, Version: asked.Version}.String()
		if write := served.FormerVersion(version); write != "" {
			out = append(out, field.Forbidden(field.NewPath("apiVersion"), version+" cannot be written any more: "+write))
		}
	}
	for _, f := range served.FormersIn(k.Kind, object) {
		out = append(out, field.Forbidden(field.NewPath(f.Path), f.Why))
	}
	return out
}
