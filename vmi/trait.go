package vmi

import (
	"reflect"
	"slices"
	"strings"
)

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
