// Package proof says which test sees the effect of each served field of the API, and
// where. docs/fields.md shows it.
//
// A proof names the assertion of its test that fails when the field has no effect. Its tests
// hold it to the generated table and to the tests of the module: every served field has a
// proof, and each of these assertions is there. That they fail without the effect is what
// internal/mutate tries.
//
// It computes; it touches nothing.
package proof

import (
	"slices"
	"strings"
)

// Place is where a test sees the effect of a field.
type Place string

// The places, the nearest to the user first.
const (
	// Guest: a guest that has booted sees it, or does what it says.
	Guest Place = "guest"
	// Domain: libvirt starts QEMU with it.
	Domain Place = "domain"
	// Pod: a real API server, kubelet or kernel has it in the launcher's pod or the pod's
	// network.
	Pod Place = "pod"
	// API: an object on a real API server shows it.
	API Place = "API"
	// XML: the XML of the domain has it, or the pod that is made of the VMI. The hosts of the
	// tests have no hardware for more, or there is nothing more to see.
	XML Place = "XML"
	// Unit: what the library computes has it.
	Unit Place = "unit"
)

// Proof is a test that sees the effect of a field and of all fields below it that have no
// proof of their own.
type Proof struct {
	// Path is as docs/fields.md writes it.
	Path string
	// Place is where it is seen.
	Place Place
	// Test is the name of the test function.
	Test string
	// Requires is a piece of the source of the assertion that fails without the effect,
	// white space in it being one space. Empty: the test goes through the fields whose
	// proof it is, and asserts something of each.
	Requires string
}

// group are the fields whose effect one test sees in one place.
type group struct {
	place  Place
	test   string
	fields []seen
}

// seen is a field, with a piece of the assertion that sees its effect.
type seen struct {
	path, requires string
}

// each are fields that their test goes through.
func each(paths ...string) []seen {
	out := make([]seen, len(paths))
	for i, p := range paths {
		out[i] = seen{path: p}
	}
	return out
}

// kinds are the groups of each kind.
var kinds = map[string][]group{
	"VirtualMachineInstance":           slices.Concat(instance, instanceStatus),
	"VirtualMachine":                   vm,
	"VirtualMachineInstanceReplicaSet": replicaSet,
	"VirtualMachinePool":               pool,
	"VirtualMachineInstanceMigration":  migration,
	"MigrationPolicy":                  migrationPolicy,

	"VirtualMachineInstancetype":        size,
	"VirtualMachineClusterInstancetype": size,
	"VirtualMachinePreference":          preference,
	"VirtualMachineClusterPreference":   preference,

	"KubeVirt": kubeVirt,
}

// All are the proofs of a kind, sorted by their paths. A kind that is not known has none.
func All(kind string) []Proof {
	var out []Proof
	for _, g := range kinds[kind] {
		for _, f := range g.fields {
			out = append(out, Proof{Path: f.path, Place: g.place, Test: g.test, Requires: f.requires})
		}
	}
	slices.SortFunc(out, func(a, b Proof) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// Of is the proof of a field: its own, or that of the nearest field above it.
func Of(kind, path string) (Proof, bool) {
	var found Proof
	for _, p := range All(kind) {
		if len(p.Path) > len(found.Path) && within(path, p.Path) {
			found = p
		}
	}
	return found, found.Path != ""
}

// within says that the path is the field, or is below it.
func within(path, field string) bool {
	rest, ok := strings.CutPrefix(path, field)
	return ok && (rest == "" || strings.ContainsRune(".[{", rune(rest[0])))
}
