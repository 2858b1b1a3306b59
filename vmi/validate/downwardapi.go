package validate

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// podFields are the fields of a pod that a file can have.
var podFields = []string{"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"}

// podResources are the resources of a container that a file can have, and the units in which
// it can have them.
var podResources = map[string][]string{
	"limits.cpu": cpuUnits, "requests.cpu": cpuUnits,
	"limits.memory": byteUnits, "requests.memory": byteUnits,
	"limits.ephemeral-storage": byteUnits, "requests.ephemeral-storage": byteUnits,
}

var (
	cpuUnits  = []string{"1", "1m"}
	byteUnits = []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
)

// downwardAPI checks files with facts of the pod, as an API server checks those of the pod.
func downwardAPI(at *field.Path, files []corev1.DownwardAPIVolumeFile) field.ErrorList {
	var l field.ErrorList
	for i := range files {
		f, here := &files[i], at.Index(i)
		l = append(l, fileName(here.Child("path"), f.Path)...)
		switch {
		case f.FieldRef != nil && f.ResourceFieldRef != nil:
			l = append(l, field.Invalid(here, f.Path, "must have one of fieldRef and resourceFieldRef: leave the other out"))
		case f.FieldRef != nil:
			l = append(l, podField(here.Child("fieldRef"), f.FieldRef)...)
		case f.ResourceFieldRef != nil:
			l = append(l, podResource(here.Child("resourceFieldRef"), f.ResourceFieldRef)...)
		default:
			l = append(l, field.Required(here, "must have fieldRef or resourceFieldRef"))
		}
		if m := f.Mode; m != nil && (*m < 0 || *m > 0o777) {
			l = append(l, field.Invalid(here.Child("mode"), *m, "must be from 0 to 0777"))
		}
	}
	return l
}

// fileName checks the path of a file in a volume.
func fileName(at *field.Path, name string) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(at, "name the file")}
	case path.IsAbs(name):
		return field.ErrorList{field.Invalid(at, name, "must be a relative path")}
	case slices.Contains(strings.Split(name, "/"), ".."), strings.HasPrefix(name, ".."):
		return field.ErrorList{field.Invalid(at, name, "must not contain '..'")}
	}
	return nil
}

func podField(at *field.Path, r *corev1.ObjectFieldSelector) field.ErrorList {
	if v := r.APIVersion; v != "" && v != "v1" {
		return field.ErrorList{field.Invalid(at.Child("apiVersion"), v, "must be v1, or left out")}
	}
	here := at.Child("fieldPath")
	name, key, subscript := strings.Cut(r.FieldPath, "['")
	key, closed := strings.CutSuffix(key, "']")
	switch {
	case r.FieldPath == "":
		return field.ErrorList{field.Required(here, "name a field of the pod, such as metadata.labels")}
	case !subscript && slices.Contains(podFields, r.FieldPath):
		return nil
	case subscript && closed && (name == "metadata.annotations" || name == "metadata.labels"):
		return invalid(here, r.FieldPath, validation.IsQualifiedName(strings.ToLower(key)))
	}
	return field.ErrorList{field.Invalid(here, r.FieldPath, "must be "+alternatives(podFields)+", or metadata.labels['KEY'] or metadata.annotations['KEY']")}
}

func podResource(at *field.Path, r *corev1.ResourceFieldSelector) field.ErrorList {
	var l field.ErrorList
	if r.ContainerName != vmi.ComputeContainer {
		l = append(l, field.Invalid(at.Child("containerName"), r.ContainerName, "must be "+vmi.ComputeContainer+", the container with the guest"))
	}
	units, ok := podResources[r.Resource]
	if name, huge := strings.CutPrefix(r.Resource, "limits."+corev1.ResourceHugePagesPrefix); huge && name != "" {
		units, ok = byteUnits, true
	} else if name, huge := strings.CutPrefix(r.Resource, "requests."+corev1.ResourceHugePagesPrefix); huge && name != "" {
		units, ok = byteUnits, true
	}
	switch {
	case !ok:
		l = append(l, field.Invalid(at.Child("resource"), r.Resource, "must be limits or requests of cpu, memory, ephemeral-storage or hugepages-*, such as limits.memory"))
	case !bad(r.Divisor) && !r.Divisor.IsZero() && !slices.ContainsFunc(units, func(u string) bool { return r.Divisor.Cmp(resource.MustParse(u)) == 0 }):
		l = append(l, field.Invalid(at.Child("divisor"), r.Divisor.String(), "must be "+alternatives(units)))
	}
	return l
}
