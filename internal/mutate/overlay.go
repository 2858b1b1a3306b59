package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"github.com/podvisor/podvisor/vmi/kinds"
)

// module is the path of the module whose types have the fields.
const module = "github.com/podvisor/podvisor/"

// field is a field of a struct.
type field struct {
	of   reflect.Type
	name string
}

// errForeign says that a field is one of another module's types.
var errForeign = errors.New("it is a field of another module's type")

// fieldAt finds the field at a path of docs/fields.md.
func fieldAt(kind, path string) (field, error) {
	for _, k := range kinds.All() {
		if k.Kind == kind {
			return within(reflect.TypeOf(k.New()), strings.Split(path, "."))
		}
	}
	return field{}, fmt.Errorf("there is no kind %s", kind)
}

func within(t reflect.Type, path []string) (field, error) {
	name := strings.TrimRight(path[0], "[]{}")
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return field{}, fmt.Errorf("%s has no field %s", t, name)
	}
	for i := range t.NumField() {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "" && (f.Anonymous || strings.Contains(options, "inline")) {
			if found, err := within(f.Type, path); err == nil || errors.Is(err, errForeign) {
				return found, err
			}
			continue
		}
		switch {
		case tag != name:
		case len(path) > 1:
			return within(f.Type, path[1:])
		case !strings.HasPrefix(t.PkgPath()+"/", module):
			return field{}, fmt.Errorf("%w: of %s", errForeign, t)
		default:
			return field{t, f.Name}, nil
		}
	}
	return field{}, fmt.Errorf("%s has no field %s", t, name)
}

// out writes to a folder what go's -overlay needs to take the field out of the module at
// root, and returns the file that names it.
func (f field) out(root, to string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(root, strings.TrimPrefix(f.of.PkgPath(), module)))
	if err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		changed, err := f.unnamed(text)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		changed = f.uncopied(changed)
		if string(changed) == string(text) {
			continue
		}
		replace[name] = filepath.Join(to, filepath.Base(name))
		if err := os.WriteFile(replace[name], changed, 0o600); err != nil {
			return "", err
		}
	}
	if len(replace) == 0 {
		return "", fmt.Errorf("no file of %s declares %s", dir, f.of)
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(to, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}

var jsonName = regexp.MustCompile(`json:"[^"]*"`)

// unnamed is the source of a file in which the field has no JSON name.
func (f field) unnamed(text []byte) ([]byte, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	out := text
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != f.of.Name() {
			return true
		}
		s, ok := spec.Type.(*ast.StructType)
		if !ok {
			return false
		}
		for _, d := range s.Fields.List {
			for _, name := range d.Names {
				if name.Name == f.name && d.Tag != nil {
					from, to := set.Position(d.Tag.Pos()).Offset, set.Position(d.Tag.End()).Offset
					tag := jsonName.ReplaceAll(text[from:to], []byte(`json:"-"`))
					out = append(append(append([]byte{}, text[:from]...), tag...), text[to:]...)
				}
			}
		}
		return false
	})
	return out, nil
}

// uncopied is the source of a file in which copies do not have the field.
func (f field) uncopied(text []byte) []byte {
	head := fmt.Sprintf("func (in *%s) DeepCopyInto(out *%[1]s) {\n", f.of.Name())
	before, rest, ok := strings.Cut(string(text), head)
	if !ok {
		return text
	}
	body, after, _ := strings.Cut(rest, "\n}\n")
	return []byte(before + head + body + fmt.Sprintf("\n\tvar none %s\n\tout.%s = none.%[2]s\n}\n", f.of.Name(), f.name) + after)
}
