package admission

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/served"
)

// former says what to write instead of what the object has of before kubevirt.io/v1, all
// at once. The schema, which the API server checks next, refuses it too, but says nothing
// of it where another field has a wrong type or is missing.
func former(k kinds.Kind, object map[string]any) field.ErrorList {
	var out field.ErrorList
	for _, f := range served.FormersIn(k.Kind, object) {
		out = append(out, field.Forbidden(field.NewPath(f.Path), f.Why))
	}
	return out
}
