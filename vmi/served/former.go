package served

import (
	"slices"
	"strings"
	"sync"

	"github.com/podvisor/podvisor/vmi"
)

// Former is a field of KubeVirt's API of before kubevirt.io/v1, which v1 does not have.
type Former struct {
	// Path is where it was, as in a [Field].
	Path string
	// Write says what to write instead, without a period.
	Write string
	// Type is the type of its value in JSON: object, array, string or integer.
	Type string
}

// formerVersions are the versions of the group kubevirt.io of before v1, newest first.
var formerVersions = []string{"v1alpha3", "v1alpha2", "v1alpha1"}

// FormerVersion says what to write instead of the version, or is "" if it is none of
// before v1.
func FormerVersion(apiVersion string) string {
	group, version, _ := strings.Cut(apiVersion, "/")
	if group != vmi.GroupName || !slices.Contains(formerVersions, version) {
		return ""
	}
	return "write apiVersion: " + vmi.GroupVersion.String()
}

// FormerKind is the kind that is written now instead of a kind of before v1, or "" if it
// is none.
func FormerKind(kind string) string { return formerKinds[kind] }

var formerKinds = map[string]string{
	"OfflineVirtualMachine":    "VirtualMachine",
	"VirtualMachineReplicaSet": "VirtualMachineInstanceReplicaSet",
}

// Formers are the fields that objects of the kind had before v1. Some are below others.
func Formers(kind string) []Former { return slices.Clone(formers[kind]) }

// FormersIn are those of the fields that the object sets, with their paths in it and
// sorted by them. Why is what to write instead.
func FormersIn(kind string, object map[string]any) Fields {
	return formerFields()[kind].In(object)
}

// formerFields are all of them, by kind.
var formerFields = sync.OnceValue(func() map[string]Fields {
	out := map[string]Fields{}
	for kind, all := range formers {
		for _, f := range all {
			out[kind] = append(out[kind], Field{Path: f.Path, Why: f.Write, Refused: true})
		}
	}
	return out
})

// ofInstances are those of the spec of a VMI.
var ofInstances = []Former{
	{"spec.domain.devices.disks[].floppy", "write cdrom or disk: guests have no floppy drive", "object"},
	{"spec.domain.devices.disks[].volumeName", "leave it out, and give the disk the name of its volume", "string"},
	{"spec.networks[].genie", "write multus, and one network for each that is attached", "object"},
	{"spec.volumes[].registryDisk", "write containerDisk", "object"},
}

// Before v1alpha2, an object of the kind VirtualMachine was what a VirtualMachineInstance
// is now, and had its fields, with what these have of before v1.
const ofTemplate = "write spec.template.spec."

var formers = map[string][]Former{
	vmi.VirtualMachineInstances.Kind:           ofInstances,
	vmi.VirtualMachineInstanceReplicaSets.Kind: inTemplate(),
	vmi.VirtualMachines.Kind: append(slices.Concat(inTemplate(), ofInstances),
		Former{"spec.affinity", ofTemplate + "affinity", "object"},
		Former{"spec.domain", ofTemplate + "domain, or kind: VirtualMachineInstance for a guest that runs once", "object"},
		Former{"spec.hostname", ofTemplate + "hostname", "string"},
		Former{"spec.networks", ofTemplate + "networks", "array"},
		Former{"spec.nodeSelector", ofTemplate + "nodeSelector", "object"},
		Former{"spec.subdomain", ofTemplate + "subdomain", "string"},
		Former{"spec.terminationGracePeriodSeconds", ofTemplate + "terminationGracePeriodSeconds", "integer"},
		Former{"spec.tolerations", ofTemplate + "tolerations", "array"},
		Former{"spec.volumes", ofTemplate + "volumes", "array"},
	),
}

// inTemplate are those of the spec of a VMI, in a template.
func inTemplate() []Former {
	out := slices.Clone(ofInstances)
	for i := range out {
		out[i].Path = "spec.template." + out[i].Path
	}
	return out
}
