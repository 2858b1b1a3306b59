package validate

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// Spec returns what is wrong with the spec at the path, or nothing. Defaults
// must have been applied to it.
func Spec(at *field.Path, s *vmi.VirtualMachineInstanceSpec) field.ErrorList {
	var l field.ErrorList
	l = append(l, placement(at, s)...)
	l = append(l, memory(at.Child("domain"), &s.Domain)...)
	l = append(l, cpu(at.Child("domain"), &s.Domain)...)
	l = append(l, volumes(at.Child("volumes"), s.Volumes)...)
	l = append(l, disks(at, s)...)
	l = append(l, networks(at.Child("networks"), s)...)
	l = append(l, interfaces(at.Child("domain", "devices", "interfaces"), s)...)
	return l
}

// placement checks what the pod takes over as it is.
func placement(at *field.Path, s *vmi.VirtualMachineInstanceSpec) field.ErrorList {
	var l field.ErrorList
	if s.Hostname != "" {
		l = append(l, invalid(at.Child("hostname"), s.Hostname, validation.IsDNS1123Label(s.Hostname))...)
	}
	if s.Subdomain != "" {
		l = append(l, invalid(at.Child("subdomain"), s.Subdomain, validation.IsDNS1123Label(s.Subdomain))...)
	}
	if t := s.TerminationGracePeriodSeconds; t != nil && *t < 0 {
		l = append(l, field.Invalid(at.Child("terminationGracePeriodSeconds"), *t, "must not be negative"))
	}
	for k, v := range s.NodeSelector {
		key := at.Child("nodeSelector").Key(k)
		l = append(l, invalid(key, k, validation.IsQualifiedName(k))...)
		l = append(l, invalid(key, v, validation.IsValidLabelValue(v))...)
	}
	return l
}

// invalid makes one fault of each message.
func invalid(at *field.Path, value string, messages []string) field.ErrorList {
	var l field.ErrorList
	for _, m := range messages {
		l = append(l, field.Invalid(at, value, m))
	}
	return l
}
