package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const whole = `
description: Thing is a kind.
properties:
  a: {$ref: part}
  b: {type: string, description: "B is a text."}
  c: {$ref: part}
  d: {$ref: part}
  size: {type: string}
  parts:
    type: array
    items: &part
      properties:
        name: {type: string, description: "Name. It is a name."}
        later: {type: string}
        alien:
          description: A field of another package. It is documented there.
          type: string
        port:
          description: Port is of another package. It has two sentences.
          properties:
            node: {type: string}
            number: {type: integer, description: A number. Of the port.}
            target:
              properties:
                name: {type: string}
                key: {type: string}
              required: [name, key]
      required: [name, later]
      x-kubernetes-validations:
      - {rule: "self.name != self.later", message: two names}
      - {rule: "self.name.size() < 5", message: long}
      - {rule: "self.port.target.name != self.port.target.key", message: two keys}
      - {rule: "self.port.number != 0", message: zero}
`

func read(t *testing.T, text string) node {
	t.Helper()
	var n node
	require.NoError(t, yaml.Unmarshal([]byte(text), &n))
	return n
}

func TestOnlyWhatIsServedStaysInTheSchema(t *testing.T) {
	m, err := readModel([]group{{dir: "testdata/sample"}})
	require.NoError(t, err)
	s := read(t, whole)
	p := pruner{model: m}
	p.schema("thing", s, m.types["Thing"])
	require.Empty(t, p.faults)
	require.ElementsMatch(t, []gap{
		{path: "thing.c", why: "no code makes it"},
		{path: "thing.d", why: "take a", refused: true},
		{path: "thing.parts[].later", why: "no code makes it"},
		{path: "thing.parts[].port.node", why: "take target", refused: true},
		{path: "thing.parts[].port.target.name", why: "no code reads it"},
		{path: "thing.size", value: "huge", why: "nothing is so large"},
	}, p.pruned)

	require.Equal(t, read(t, `
description: "Thing is a kind.\n\nNot served: c, d. Podvisor's docs/fields.md and its program check-manifest say why."
properties:
  a: {$ref: part}
  b: {type: string, description: "b is a text."}
  size: {type: string, enum: [small, large]}
  parts:
    type: array
    items:
      description: "Not served: later. Podvisor's docs/fields.md and its program check-manifest say why."
      properties:
        name: {type: string, description: "Name. It is a name."}
        alien: {type: string, description: A field of another package.}
        port:
          description: "port is of another package. It has two sentences.\n\nNot served: node. Podvisor's docs/fields.md and its program check-manifest say why."
          properties:
            number: {type: integer, description: A number.}
            target:
              description: "Not served: name. Podvisor's docs/fields.md and its program check-manifest say why."
              properties:
                key: {type: string}
              required: [key]
      required: [name]
      x-kubernetes-validations:
      - {rule: "self.name.size() < 5", message: long}
      - {rule: "self.port.number != 0", message: zero}
x-kubernetes-validations:
- rule: has(self.a) != (has(self.b) && self.b != '')
  message: "a thing has exactly one of: a or b"
`), clean(t, s))
}

// clean brings a schema into the form of one that was read.
func clean(t *testing.T, s node) node {
	t.Helper()
	b, err := yaml.Marshal(s)
	require.NoError(t, err)
	return read(t, string(b))
}

func TestARuleAboutAnUnknownFieldIsAFault(t *testing.T) {
	m, err := readModel([]group{{dir: "testdata/sample"}})
	require.NoError(t, err)
	p := pruner{model: m}
	s := read(t, `{x-kubernetes-validations: [{rule: "self.nick != ''", message: m}]}`)
	p.schema("part", s, m.types["Part"])
	require.Len(t, p.faults, 1)
	require.ErrorContains(t, p.faults[0], "unknown field nick")
}

func TestValuesOfAnEnumerationThatAreNotServedAreNotMarkedAtItsFields(t *testing.T) {
	m, err := readModel([]group{{dir: "testdata/sample"}})
	require.NoError(t, err)
	m.types["Thing"].fields["size"].unbuilt = []unbuilt{{"large", "no code makes it"}}
	p := pruner{model: m}
	p.schema("thing", read(t, `{properties: {size: {type: string}}}`), m.types["Thing"])
	require.NotEmpty(t, p.faults)
	require.ErrorContains(t, p.faults[0], "thing.size: unservedValues is for words without a type of their own: mark the constants of Size")
}

func TestAMarkerOfAnUnknownFieldOfAnotherPackageIsAFault(t *testing.T) {
	m, err := readModel([]group{{dir: "testdata/sample"}})
	require.NoError(t, err)
	for name, schema := range map[string]string{
		"Part": `{properties: {port: {properties: {node: {type: string}}}}}`,
		"Gate": `{properties: {node: {type: string}, open: {type: boolean}}}`,
	} {
		p := pruner{model: m}
		p.schema("it", read(t, schema), m.types[name])
		require.Len(t, p.faults, 1, name)
		require.ErrorContains(t, p.faults[0], "unknown field target.name of other.Port")
	}
}

func TestWhatIsServedOfAnInlinedStructOfAnotherPackageStaysInTheSchema(t *testing.T) {
	m, err := readModel([]group{{dir: "testdata/sample"}})
	require.NoError(t, err)
	const gate = `
properties:
  open: {type: boolean}
  node: {type: string}
  number: {type: integer, description: A number. Of the port.}
  target: {properties: {name: {type: string}, key: {type: string}}, required: [name, key]}
x-kubernetes-validations:
- {rule: "self.target.name != ''", message: no name}
- {rule: "self.open", message: closed}
`
	s := read(t, gate)
	p := pruner{model: m}
	p.schema("gate", s, m.types["Gate"])
	require.Empty(t, p.faults)
	require.ElementsMatch(t, []gap{
		{path: "gate.node", why: "take target", refused: true},
		{path: "gate.target.name", why: "no code reads it"},
	}, p.pruned)
	require.Equal(t, read(t, `
description: "Not served: node. Podvisor's docs/fields.md and its program check-manifest say why."
properties:
  open: {type: boolean}
  number: {type: integer, description: A number.}
  target: {description: "Not served: name. Podvisor's docs/fields.md and its program check-manifest say why.", properties: {key: {type: string}}, required: [key]}
x-kubernetes-validations:
- {rule: "self.open", message: closed}
`), clean(t, s))

	m.serveAll()
	p = pruner{model: m}
	s = read(t, gate)
	p.schema("gate", s, m.types["Gate"])
	require.Equal(t, []gap{{path: "gate.node", why: "take target", refused: true}}, p.pruned)
}

func TestAMarkerOfAWholeInlinedStructIsAFault(t *testing.T) {
	for _, field := range []string{
		"// +podvisor:unserved=later\n\tother.Port `json:\",inline\"`",
		"// +podvisor:unserved:name=later\n\tPart `json:\",inline\"`",
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "sample.go"), []byte("package sample\n\ntype Whole struct {\n\t"+field+"\n}\n"), 0o600))
		_, err := readModel([]group{{dir: dir}})
		require.ErrorContains(t, err, "of Whole: it is inlined: the markers belong to its fields")
	}
}

func TestAUnionIsARuleOverItsServedMembers(t *testing.T) {
	for _, tt := range []struct {
		rule string
		set  []string
		want string
	}{
		{"exactlyOne", []string{"a"}, "a"},
		{"exactlyOne", []string{"a", "b"}, "a != b"},
		{"exactlyOne", []string{"a", "b", "c"}, "[a, b, c].filter(x, x).size() == 1"},
		{"atMostOne", []string{"a"}, ""},
		{"atMostOne", []string{"a", "b"}, "!(a && b)"},
		{"atMostOne", []string{"a", "b", "c"}, "[a, b, c].filter(x, x).size() <= 1"},
		{"atLeastOne", []string{"a"}, "a"},
		{"atLeastOne", []string{"a", "b"}, "a || b"},
	} {
		require.Equal(t, tt.want, unionRule(tt.rule, tt.set))
	}
}

func TestAUnionOfAllThatIsNotRequiredIsARuleOverTheNumberOfFields(t *testing.T) {
	all := []string{"a", "b", "c", "d"}
	for schema, want := range map[string]int{
		// d is not served.
		`{properties: {a: {type: object}, b: {type: object}, c: {type: object}}}`:                                                  1,
		`{properties: {name: {type: string}, a: {type: object}, b: {type: object}, c: {type: object}}, required: [name]}`:          2,
		`{properties: {name: {type: string}, a: {type: object}, b: {type: object}, c: {type: object}}}`:                            0,
		`{properties: {name: {type: string}, a: {type: object}, b: {type: object}, c: {type: object}}, required: [name, a]}`:       0,
		`{properties: {a: {type: object}, b: {type: object}, c: {type: string}}}`:                                                  0,
		`{properties: {name: {type: string}, other: {}, a: {type: object}, b: {type: object}, c: {}}, required: [name]}`:           0,
		`{properties: {name: {type: string}, other: {}, a: {type: object}, b: {type: object}, c: {}}, required: [name, other, b]}`: 0,
	} {
		require.Equal(t, want, wholeSize(read(t, schema), union{rule: "exactlyOne", members: all}), schema)
	}
	s := read(t, `{properties: {a: {type: object}, b: {type: object}, c: {type: object}}}`)
	require.Zero(t, wholeSize(s, union{rule: "exactlyOne", members: all[:2]}))
	require.Zero(t, wholeSize(s, union{rule: "atMostOne", members: all}))
	require.Zero(t, wholeSize(s, union{rule: "atLeastOne", members: all}))
}

func TestTheFirstSentenceEndsAtItsPeriod(t *testing.T) {
	for in, want := range map[string]string{
		"One.":                       "One.",
		"One\nand a half. Two.":      "One and a half.",
		"Some, e.g. this. Not that.": "Some, e.g. this.",
		"No period\n\nnext":          "No period",
	} {
		require.Equal(t, want, firstSentence(in))
	}
}

func TestWhatIsNotServedIsATable(t *testing.T) {
	require.Equal(t, unservedHead+`	"A": {
		{Path: "spec.b[].c", Why: "no \"c\""},
		{Path: "spec.d", Value: "x", Why: "no x"},
		{Path: "spec.d", Value: "y", Why: "no y"},
		{Path: "spec.e", Why: "take d", Refused: true},
	},
	"B": {
		{Why: "no kind"},
	},
}
`, string(renderUnserved(map[string][]gap{
		"E": nil,
		"B": {{why: "no kind"}},
		"A": {
			{path: "A.spec.e", why: "take d", refused: true},
			{path: "A.spec.d", value: "y", why: "no y"},
			{path: "A.spec.d", value: "x", why: "no x"},
			{path: "A.spec.b[].c", why: `no "c"`},
		},
	})))
}
