package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// node is a schema, or any other object of a definition.
type node map[string]any

// definition is a CustomResourceDefinition with one version.
type definition struct {
	file string
	root node
}

func readDefinition(file string) (*definition, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	d := &definition{file: filepath.Base(file)}
	if err := yaml.Unmarshal(b, &d.root); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return d, nil
}

func (d *definition) kind() string {
	return d.root.child("spec").child("names")["kind"].(string)
}

// schema is the schema of the one version.
func (d *definition) schema() node {
	versions := d.root.child("spec")["versions"].([]any)
	return object(versions[0]).child("schema").child("openAPIV3Schema")
}

func (d *definition) yaml() ([]byte, error) {
	b, err := yaml.Marshal(d.root)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", d.file, err)
	}
	return bytes.Join([][]byte{[]byte("---\n"), b}, nil), nil
}

// object sees a decoded value as a node; nil if it is none.
func object(v any) node {
	switch v := v.(type) {
	case node:
		return v
	case map[string]any:
		return v
	}
	return nil
}

func (n node) child(name string) node { return object(n[name]) }

// has says whether the schema has a field at the path, through lists and maps.
func (n node) has(path []string) bool {
	for _, name := range path {
		n, _ = n.element()
		if n = n.child("properties").child(name); n == nil {
			return false
		}
	}
	return true
}

// element is the schema below lists and maps, and what is to be written behind
// the name of a field to mean it.
func (n node) element() (node, string) {
	if items := n.child("items"); items != nil {
		return items, "[]"
	}
	if values := n.child("additionalProperties"); values != nil {
		return values, "{}"
	}
	return n, ""
}
