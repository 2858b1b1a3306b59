package chart

import (
	"fmt"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// property is a value of the chart, as its schema has it.
type property struct {
	name, description string
	// path has dots.
	path string
	// fallback is the default of a value that no manifest has. Nil: the manifests have it.
	fallback *yaml.RNode
	// properties are the values in it. None: it is a value itself.
	properties []property
}

// properties are the values in the order of the schema.
func properties() ([]property, error) {
	text, err := static.ReadFile("files/values.schema.json")
	if err != nil {
		return nil, err
	}
	schema, err := yaml.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("read the schema of the values: %w", err)
	}
	return propertiesOf(schema, "")
}

func propertiesOf(schema *yaml.RNode, prefix string) (out []property, err error) {
	in := schema.Field("properties")
	if in == nil {
		return nil, nil
	}
	err = in.Value.VisitFields(func(n *yaml.MapNode) error {
		p := property{name: yaml.GetValue(n.Key)}
		p.path = prefix + p.name
		if d := n.Value.Field("description"); d != nil {
			p.description = yaml.GetValue(d.Value)
		}
		if d := n.Value.Field("default"); d != nil {
			p.fallback = d.Value
		}
		var err error
		p.properties, err = propertiesOf(n.Value, p.path+".")
		out = append(out, p)
		return err
	})
	return out, err
}

// writeValues writes the file with the defaults.
func writeValues(defaults map[string]*yaml.RNode) (string, error) {
	all, err := properties()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString("# The values of the chart. values.schema.json says what each may be.\n")
	used := map[string]bool{}
	if err := write(&out, all, "", defaults, used); err != nil {
		return "", err
	}
	for path := range defaults {
		if !used[path] {
			return "", fmt.Errorf("the schema of the values has no %s", path)
		}
	}
	return out.String(), nil
}

// width is the length of the lines of the comments.
const width = 100

func write(out *strings.Builder, all []property, indent string, defaults map[string]*yaml.RNode, used map[string]bool) error {
	for _, p := range all {
		out.WriteString("\n")
		line := indent + "#"
		for word := range strings.FieldsSeq(p.description) {
			if len(line)+1+len(word) > width {
				out.WriteString(line + "\n")
				line = indent + "#"
			}
			line += " " + word
		}
		out.WriteString(line + "\n")
		if p.properties != nil {
			fmt.Fprintf(out, "%s%s:\n", indent, p.name)
			if err := write(out, p.properties, indent+"  ", defaults, used); err != nil {
				return err
			}
			continue
		}
		value := p.fallback
		if d := defaults[p.path]; d != nil {
			value, used[p.path] = d, true
		}
		if value == nil {
			return fmt.Errorf("value %s has no default: neither the manifests nor the schema say one", p.path)
		}
		one := yaml.NewMapRNode(nil)
		if err := one.PipeE(yaml.SetField(p.name, value)); err != nil {
			return err
		}
		text, err := one.String()
		if err != nil {
			return err
		}
		for line := range strings.Lines(text) {
			out.WriteString(indent + line)
		}
	}
	return nil
}
