package admission

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi/kinds"
)

// unserved are the fields of the object's spec that are not served, with the sentences of
// check-manifest, whatever client wrote them. An API server drops what its schema does not
// have before it calls a webhook: so the schema has these fields, with a rule that refuses
// them where no webhook answers.
func unserved(k kinds.Kind, object map[string]any) field.ErrorList {
	spec := map[string]any{"spec": object["spec"]}
	var out field.ErrorList
	for _, f := range k.Unserved().In(spec) {
		if f.Path != "" && f.Value == "" {
			out = append(out, field.Forbidden(field.NewPath(f.Path), f.Sentence()))
		}
	}
	return out
}
