package schema

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"sync"
)

//go:embed zz_generated.schemas.json
var generated []byte

// node is the schema of a value. The words are those of OpenAPI and of
// CustomResourceDefinitions.
type node struct {
	// Ref is the number of a schema that several places have, counted from 1. All
	// other fields are of that one then.
	Ref int `json:"$ref,omitempty"`

	Type        string `json:"type,omitempty"`
	Format      string `json:"format,omitempty"`
	Nullable    bool   `json:"nullable,omitempty"`
	IntOrString bool   `json:"x-kubernetes-int-or-string,omitempty"`
	// Default is set where the value is missing. Nil: nothing is.
	Default any   `json:"default,omitempty"`
	Enum    []any `json:"enum,omitempty"`

	Minimum   *float64 `json:"minimum,omitempty"`
	Maximum   *float64 `json:"maximum,omitempty"`
	MinLength *int     `json:"minLength,omitempty"`
	MaxLength *int     `json:"maxLength,omitempty"`
	Pattern   string   `json:"pattern,omitempty"`

	Items    *node    `json:"items,omitempty"`
	MaxItems *int     `json:"maxItems,omitempty"`
	ListType string   `json:"x-kubernetes-list-type,omitempty"`
	ListKeys []string `json:"x-kubernetes-list-map-keys,omitempty"`

	Properties    map[string]*node `json:"properties,omitempty"`
	Required      []string         `json:"required,omitempty"`
	Values        *node            `json:"additionalProperties,omitempty"`
	MaxProperties *int             `json:"maxProperties,omitempty"`

	Rules []rule `json:"x-kubernetes-validations,omitempty"`

	pattern *regexp.Regexp
	// defaulted are the Properties with a Default.
	defaulted []string
}

// rule is a rule in CEL.
type rule struct {
	Rule    string `json:"rule"`
	Message string `json:"message"`
	// FieldPath is what the rule is about, below the value that has it.
	FieldPath string `json:"fieldPath,omitempty"`

	expression expression
}

// schemas are those of all served kinds.
type schemas struct {
	Shared []*node          `json:"shared"`
	Kinds  map[string]*node `json:"kinds"`
}

// all reads the schemas once. They are not changed after that.
var all = sync.OnceValue(func() *schemas {
	s := &schemas{}
	if err := json.Unmarshal(generated, s); err != nil {
		panic(fmt.Sprintf("the generated schemas: %v", err))
	}
	for _, n := range s.Shared {
		if n.Ref == 0 {
			n.prepare(s.Shared)
		}
	}
	for kind, n := range s.Kinds {
		s.Kinds[kind] = n.prepared(s.Shared)
	}
	return s
})

// prepared is the schema that is meant, ready for use, or nil for nil.
func (n *node) prepared(shared []*node) *node {
	if n == nil {
		return nil
	}
	if n.Ref == 0 {
		n.prepare(shared)
	}
	for n.Ref > 0 { // those that are shared are prepared on their own
		n = shared[n.Ref-1]
	}
	return n
}

// prepare compiles what is text in the schema and in those below it, and puts in place of
// each reference below it the schema that is meant.
func (n *node) prepare(shared []*node) {
	if n.Pattern != "" {
		n.pattern = regexp.MustCompile(n.Pattern)
	}
	for i := range n.Rules {
		e, err := parse(n.Rules[i].Rule)
		if err != nil {
			panic(fmt.Sprintf("the rule %q: %v", n.Rules[i].Rule, err))
		}
		n.Rules[i].expression = e
	}
	for name, below := range n.Properties {
		below = below.prepared(shared)
		n.Properties[name] = below
		if below.Default != nil {
			n.defaulted = append(n.defaulted, name)
		}
	}
	n.Items, n.Values = n.Items.prepared(shared), n.Values.prepared(shared)
}
