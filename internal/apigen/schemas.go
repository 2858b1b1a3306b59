package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// judged are the words of schemas by which internal/vmi/schema judges objects.
var judged = []string{
	"type", "format", "nullable", "x-kubernetes-int-or-string", "default", "enum", "minimum", "maximum", "minLength", "maxLength", "pattern",
	"maxItems", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "required", "maxProperties", validations,
}

// unjudged are words that judge nothing beside those: what the value is for people, how
// it is merged, and what is kept of what is not known. anyOf stands beside
// x-kubernetes-int-or-string alone.
var unjudged = []string{"description", "x-kubernetes-map-type", "x-kubernetes-preserve-unknown-fields", "anyOf", "items", "properties", "additionalProperties"}

// leastShared is the length of a schema, as JSON, that is written once for all places.
const leastShared = 200

// renderSchemas writes the schemas of the served kinds without their descriptions, as
// JSON. A schema that several places have is written once.
func renderSchemas(served []*definition) ([]byte, error) {
	r := sharing{places: map[string]int{}, numbers: map[string]int{}}
	bare, out := map[string]map[string]any{}, map[string]any{}
	for _, d := range served {
		s, err := bareSchema(d.schema())
		if err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", d.kind(), err)
		}
		bare[d.kind()] = s
		r.count(s)
	}
	for _, kind := range slices.Sorted(maps.Keys(bare)) {
		out[kind] = r.below(bare[kind])
	}
	text, err := json.MarshalIndent(map[string]any{"shared": r.shared, "kinds": out}, "", " ")
	return append(text, '\n'), err
}

// bareSchema is a schema without what judges nothing.
func bareSchema(s node) (map[string]any, error) {
	out := map[string]any{}
	for word, v := range s {
		switch {
		case slices.Contains(judged, word):
			out[word] = v
		case !slices.Contains(unjudged, word):
			return nil, fmt.Errorf("package internal/vmi/schema does not know the word %s", word)
		}
	}
	if properties := s.child("properties"); properties != nil {
		bare := map[string]any{}
		for name, v := range properties {
			b, err := bareSchema(object(v))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			bare[name] = b
		}
		out["properties"] = bare
	}
	for _, word := range []string{"items", "additionalProperties"} {
		if below := s.child(word); below != nil {
			b, err := bareSchema(below)
			if err != nil {
				return nil, err
			}
			out[word] = b
		}
	}
	return out, nil
}

// sharing finds schemas that several places have.
type sharing struct {
	// places is how many places have a schema, by its JSON.
	places map[string]int
	// numbers are those of the shared ones.
	numbers map[string]int
	shared  []any
}

// parts are the schemas right below one, with what puts another in the place of each.
func parts(s map[string]any) (all []map[string]any, put []func(any)) {
	add := func(in map[string]any, key string) {
		if below, ok := in[key].(map[string]any); ok {
			all, put = append(all, below), append(put, func(v any) { in[key] = v })
		}
	}
	if properties, ok := s["properties"].(map[string]any); ok {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			add(properties, name)
		}
	}
	add(s, "items")
	add(s, "additionalProperties")
	return all, put
}

func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // it was YAML
	}
	return string(text)
}

func (r *sharing) count(s map[string]any) {
	text := jsonOf(s)
	r.places[text]++
	if r.places[text] > 1 {
		return // as are those below it
	}
	all, _ := parts(s)
	for _, below := range all {
		r.count(below)
	}
}

// below replaces the shared schemas in s and returns it, or a reference to it.
func (r *sharing) below(s map[string]any) any {
	text := jsonOf(s)
	isShared := r.places[text] > 1 && len(text) >= leastShared
	if n := r.numbers[text]; isShared && n > 0 {
		return map[string]any{"$ref": n}
	}
	all, put := parts(s)
	for i := range all {
		put[i](r.below(all[i]))
	}
	if !isShared {
		return s
	}
	r.shared = append(r.shared, s)
	r.numbers[text] = len(r.shared)
	return map[string]any{"$ref": len(r.shared)}
}
