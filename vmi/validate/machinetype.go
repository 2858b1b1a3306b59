package validate

import (
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// configuredTypes is what a configuration says about the machine types of an
// architecture, and where.
type configuredTypes struct {
	arch string
	at   *field.Path
	*vmi.ArchitectureSettings
}

// typesOf are all that a configuration says about machine types. The first that
// says something counts.
func typesOf(at *field.Path, c *vmi.KubeVirtConfiguration) []configuredTypes {
	var all []configuredTypes
	if a := c.ArchitectureConfiguration; a != nil {
		here := at.Child("architectureConfiguration")
		for _, b := range []configuredTypes{
			{defaults.AMD64, here.Child("amd64"), a.AMD64},
			{defaults.ARM64, here.Child("arm64"), a.ARM64},
			{defaults.S390X, here.Child("s390x"), a.S390X},
		} {
			if b.ArchitectureSettings != nil {
				all = append(all, b)
			}
		}
	}
	return append(all, configuredTypes{defaults.AMD64, at, &vmi.ArchitectureSettings{
		MachineType: c.DeprecatedMachineType, EmulatedMachines: c.DeprecatedEmulatedMachines,
	}})
}

// architectures checks the architectures of a configuration and their machine
// types.
func architectures(at *field.Path, c *vmi.KubeVirtConfiguration) field.ErrorList {
	var l field.ErrorList
	if a := c.ArchitectureConfiguration; a != nil {
		l = append(l, oneOf(at.Child("architectureConfiguration", "defaultArchitecture"), a.DefaultArchitecture, defaults.AMD64, defaults.ARM64, defaults.S390X)...)
	}
	all := typesOf(at, c)
	faults := len(l)
	for _, b := range all {
		for i, p := range b.EmulatedMachines {
			if _, err := path.Match(p, ""); err != nil || p == "" {
				l = append(l, field.Invalid(b.at.Child("emulatedMachines").Index(i), p, "must be a pattern such as pc-q35-*, in which every [ has its ]"))
			}
		}
	}
	if len(l) > faults {
		return l // what a pattern allows that is none cannot be said
	}
	for _, arch := range []string{defaults.AMD64, defaults.ARM64, defaults.S390X} {
		l = append(l, defaultType(arch, all, c)...)
	}
	return l
}

// defaultType checks that VMIs which name no machine type get one that is
// allowed. If that is the built-in one, the fault is the list that leaves it out.
func defaultType(arch string, all []configuredTypes, c *vmi.KubeVirtConfiguration) field.ErrorList {
	usual := defaults.Spec(&vmi.VirtualMachineInstanceSpec{Architecture: arch}, defaults.Configured(c)).Domain.Machine.Type
	allowed := Configured(c).machineTypes(arch)
	if matches(allowed, usual) {
		return nil
	}
	for _, b := range all {
		if b.arch == arch && b.MachineType != "" {
			return field.ErrorList{field.Invalid(b.at.Child("machineType"), usual,
				"must match "+alternatives(allowed)+", which are the machine types that VMIs may have: name one of them, or add a pattern to emulatedMachines")}
		}
	}
	for _, b := range all {
		if b.arch == arch && len(b.EmulatedMachines) > 0 {
			return field.ErrorList{field.Invalid(b.at.Child("emulatedMachines"), strings.Join(b.EmulatedMachines, ", "),
				"must allow "+usual+", which VMIs get that name no machine type: add a pattern for it, or set machineType")}
		}
	}
	return nil // the built-in machine type and the built-in patterns fit
}
