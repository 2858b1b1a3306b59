package validate

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/served"
)

// Instance returns what is wrong with a VMI that the user makes, or nothing.
func Instance(v *vmi.VirtualMachineInstance, by User, lim Limits) field.ErrorList {
	l := Spec(field.NewPath("spec"), &v.Spec, lim)
	l = append(l, shown(field.NewPath("spec"), &v.Spec)...)
	l = append(l, memoryRequested(field.NewPath("spec"), &v.Spec.Domain)...)
	l = append(l, metadata(field.NewPath("metadata"), &v.ObjectMeta, by)...)
	l = append(l, places(field.NewPath("spec"), &v.Spec, v.Annotations)...)
	return judged(vmi.VirtualMachineInstances.Kind, v, lim, l)
}

// shown checks that each volume has something that shows it. Defaults take care
// of it; what is stored without them must not lose a volume.
func shown(at *field.Path, s *vmi.VirtualMachineInstanceSpec) field.ErrorList {
	var l field.ErrorList
	names := map[string]bool{}
	for _, d := range s.Domain.Devices.Disks {
		names[d.Name] = true
	}
	for _, f := range s.Domain.Devices.Filesystems {
		names[f.Name] = true
	}
	for i, v := range s.Volumes {
		if !names[v.Name] {
			name := at.Child("domain", "volumes").Index(i).Child("name").String()
			l = append(l, as(name, field.Invalid(at.Child("volumes").Index(i).Child("name"), v.Name, "no disk and no file system shows this volume")))
		}
	}
	return l
}

// memoryRequested checks that a VMI says how much memory it has. Three fields can,
// and the fault is reported at the one that most manifests have.
func memoryRequested(at *field.Path, d *vmi.DomainSpec) field.ErrorList {
	if r := d.Resources.Requests[corev1.ResourceMemory]; !r.IsZero() {
		return nil
	}
	if m := d.Memory; m != nil && (m.Guest != nil || m.Hugepages != nil) {
		return nil
	}
	dom := at.Child("domain")
	return field.ErrorList{field.Required(dom.Child("memory", "guest"), "say how much memory the guest sees: here, or in "+
		dom.Child("resources", "requests", "memory").String()+", or have one huge page by "+dom.Child("memory", "hugepages", "pageSize").String())}
}

// reserved are the labels that only Podvisor writes.
var reserved = vmi.ReservedLabels()

// metadata checks labels and annotations that mean something to Podvisor.
func metadata(at *field.Path, m *metav1.ObjectMeta, by User) field.ErrorList {
	l := metav1validation.ValidateLabels(m.Labels, at.Child("labels"))
	l = append(l, apivalidation.ValidateAnnotations(m.Annotations, at.Child("annotations"))...)
	if taken := reservedLabels(m.Labels); len(taken) > 0 && !by.ours() {
		l = append(l, notYours(at.Child("labels"), taken))
	}
	for _, a := range served.Marks() {
		if a.State == served.MarkRefused && m.Annotations[a.Key] != "" {
			l = append(l, field.Invalid(at.Child("annotations"), a.Key, "this annotation is not served: "+a.Why+". Remove it"))
		}
	}
	return l
}

// reservedLabels are the keys that the labels have and users may not write.
func reservedLabels(labels map[string]string) []string {
	var out []string
	for _, k := range reserved {
		if _, ok := labels[k]; ok {
			out = append(out, k)
		}
	}
	return out
}

func notYours(at *field.Path, keys []string) *field.Error {
	e := whole(field.ErrorTypeNotSupported, "the labels "+strings.Join(slices.Sorted(slices.Values(keys)), ", ")+" are written by Podvisor only: remove them")
	if at != nil {
		e.Field = at.String()
	}
	return e
}
