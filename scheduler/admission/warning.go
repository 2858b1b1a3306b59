package admission

import (
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/storage/cloudinit"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/kinds"
)

// mostWarnings is how many an answer has: the API server passes 4096 characters on, and
// people read fewer.
const mostWarnings = 10

// warnings are what is no fault of the object and has not the effect that its author
// expects. One that another object made has them already.
func warnings(k kinds.Kind, v vmi.Object, req *admissionv1.AdmissionRequest) []string {
	if req.SubResource != "" || v.GetDeletionTimestamp() != nil || metav1.GetControllerOfNoCopy(v) != nil {
		return nil
	}
	var out []string
	if kv, ok := v.(*vmi.KubeVirt); ok {
		out = config.Gates(&kv.Spec.Configuration)
	}
	path, volumes := volumesOf(k, v)
	for i := range volumes {
		for _, w := range cloudinit.Warnings(&volumes[i]) {
			out = append(out, fmt.Sprintf("%s.volumes[%d].%s", path, i, w))
		}
	}
	if more := len(out) - mostWarnings; more > 0 {
		out = append(out[:mostWarnings], fmt.Sprintf("%d more", more))
	}
	return out
}

// volumesOf are the volumes of the guests that the object runs or makes, with the path of
// the spec that has them.
func volumesOf(k kinds.Kind, v vmi.Object) (path string, volumes []vmi.Volume) {
	if i, ok := v.(*vmi.VirtualMachineInstance); ok {
		return "spec", i.Spec.Volumes
	}
	if k.Template != nil {
		if t := k.Template(v); t != nil {
			return "spec.template.spec", t.Spec.Volumes
		}
	}
	if k.VM != nil {
		if m := k.VM(v); m != nil && m.Spec.Template != nil {
			return "spec.virtualMachineTemplate.spec.template.spec", m.Spec.Template.Spec.Volumes
		}
	}
	return "", nil
}
