package admission

import (
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/kinds"
)

// AtSecretPaths is for tests of other packages' webhooks with a token of their own.
var AtSecretPaths = atSecretPaths

// completionPath is [DefaultsPath] for objects whose faults do not matter: a test of defaults
// writes only what the defaults depend on.
const completionPath = "/admission/completion"

func init() {
	hook := webhooks[DefaultsPath]
	webhooks[completionPath] = webhook{func(k kinds.Kind, c kinds.Cluster, req *admissionv1.AdmissionRequest, sent []byte) (*admissionv1.AdmissionResponse, error) {
		k.Create = func(vmi.Object, kinds.Cluster) field.ErrorList { return nil }
		return hook.answer(k, c, req, sent)
	}, hook.unreadable}
}
