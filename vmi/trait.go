package vmi

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Trait is what a part of a VMI, such as a device, asks of its pod and of its nodes. A
// part that asks for nothing has none.
//
// +kubebuilder:object:generate=false
type Trait struct {
	// Part is the field of the part, from spec.domain on.
	Part string
	// Has says that the VMI has the part.
	Has func(*VirtualMachineInstance) bool
	// MemoryBytes is what the pod needs for the part beside the guest's memory.
	MemoryBytes int64
	// Resource is the device of the node that the pod asks for. Empty: none.
	Resource corev1.ResourceName
	// StateDir is the folder in the pod of what outlasts the VMI, or empty if this VMI
	// keeps nothing of the part. Nil: it never does.
	StateDir func(*DomainSpec) string
	// Stays is the reason of [ConditionLiveMigratable] with which a VMI that has the part
	// stays on its node, and Why is its message. Empty: it can move.
	Stays, Why string
}

// Some structs have one field for each kind of a thing, such as [VolumeSource]. What all
// of a kind can do is in the tag "traits" of its field, so that who asks needs no list
// of kinds.

// set are the JSON names of the fields of a struct that are set.
func set[T any](of T) []string {
	var out []string
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			out = append(out, jsonName(v.Type().Field(i)))
		}
	}
	return out
}

// having are the JSON names of the fields of a struct that have the trait.
func having[T any](trait string) []string {
	var out []string
	t := reflect.TypeFor[T]()
	for i := range t.NumField() {
		if f := t.Field(i); slices.Contains(strings.Split(f.Tag.Get("traits"), ","), trait) {
			out = append(out, jsonName(f))
		}
	}
	return out
}

// has says that a field of the struct is set that has the trait.
func has[T any](of T, trait string) bool {
	with := having[T](trait)
	return slices.ContainsFunc(set(of), func(name string) bool { return slices.Contains(with, name) })
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
