package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/podvisor/podvisor/vmi/kinds"
)

// module is the path of the module whose types have the fields.
const module = "github.com/podvisor/podvisor/"

// field is a field of a struct.
type field struct {
	of   reflect.Type
	name string
	// status says that it is one of a status, which the programs write.
	status bool
}

// side is whose source does not write a field.
type side string

// The sides.
const (
	programs side = "programs"
	tests    side = "tests"
)

// sides are those whose writes of the field count. What a program writes to a status, another
// one reads, so that a test may write it too.
func (f field) sides() []side {
	if f.status {
		return []side{programs, tests}
	}
	return []side{tests}
}

// errForeign says that a field is one of another module's types.
var errForeign = errors.New("it is a field of another module's type")

// fieldAt finds the field at a path of docs/fields.md.
func fieldAt(kind, path string) (field, error) {
	for _, k := range kinds.All() {
		if k.Kind == kind {
			f, err := within(reflect.TypeOf(k.New()), strings.Split(path, "."))
			f.status = strings.HasPrefix(path, "status")
			return f, err
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
			return field{of: t, name: f.Name}, nil
		}
	}
	return field{}, fmt.Errorf("%s has no field %s", t, name)
}

// out writes to a folder what go's -overlay needs to take the field out of the module at
// root, and returns the file that names it. The writes of the side go too: those of all
// programs, or of the tests in a folder.
func (f field) out(root, folder string, by side, to string) (string, error) {
	files, err := f.files(root, folder, by)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		changed := text
		for _, without := range []func([]byte) ([]byte, error){f.unnamed, f.uncopied, f.unwritten} {
			if changed, err = without(changed); err != nil {
				return "", fmt.Errorf("%s: %w", name, err)
			}
		}
		if string(changed) == string(text) {
			continue
		}
		replace[name] = filepath.Join(to, fmt.Sprintf("%d-%s", len(replace), filepath.Base(name)))
		if err := os.WriteFile(replace[name], changed, 0o600); err != nil {
			return "", err
		}
	}
	if len(replace) == 0 {
		return "", fmt.Errorf("no file declares %s", f.of)
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(to, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}

// files are the files of the module that may have to do with the field: those of its type,
// and those of the side.
func (f field) files(root, folder string, by side) ([]string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	of := filepath.Join(root, strings.TrimPrefix(f.of.PkgPath(), module))
	var out []string
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		dir, test := filepath.Dir(path), strings.HasSuffix(path, "_test.go")
		if !test && (dir == of || by == programs) || test && by == tests && dir == filepath.Join(root, folder) {
			out = append(out, path)
		}
		return nil
	})
	return out, err
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
func (f field) uncopied(text []byte) ([]byte, error) {
	head := fmt.Sprintf("func (in *%s) DeepCopyInto(out *%[1]s) {\n", f.of.Name())
	before, rest, ok := strings.Cut(string(text), head)
	if !ok {
		return text, nil
	}
	body, after, _ := strings.Cut(rest, "\n}\n")
	return []byte(before + head + body + fmt.Sprintf("\n\tvar none %s\n\tout.%s = none.%[2]s\n}\n", f.of.Name(), f.name) + after), nil
}

// edit is a piece of a source that becomes another.
type edit struct {
	from, to int
	text     string
}

// unwritten is the source of a file that does not write the field: assignments to a field of
// this name go nowhere, and literals of its type do not have it.
func (f field) unwritten(text []byte) ([]byte, error) {
	if !bytes.Contains(text, []byte(f.name)) || bytes.HasPrefix(text, []byte("// Code generated")) {
		return text, nil
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	at := func(p token.Pos) int { return set.Position(p).Offset }
	none := fmt.Sprintf("none%08x", crc32.ChecksumIEEE(text)) // one for each file
	var edits []edit
	elements := map[ast.Expr]ast.Expr{} // the types of literals without one
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, to := range n.Lhs {
				if s, ok := to.(*ast.SelectorExpr); ok && n.Tok == token.ASSIGN && s.Sel.Name == f.name {
					edits = append(edits, edit{at(to.Pos()), at(to.End()), "_"})
				}
			}
		case *ast.CompositeLit:
			of := n.Type
			if of == nil {
				of = elements[n]
			}
			for _, e := range n.Elts {
				pair, ok := e.(*ast.KeyValueExpr)
				if ok {
					e = pair.Value
				}
				elements[e] = elementOf(of)
				if key, is := keyOf(pair); is && key == f.name && nameOf(of) == f.of.Name() {
					edits = append(edits, dropped(pair, at, text, none))
				}
			}
		}
		return true
	})
	slices.SortFunc(edits, func(a, b edit) int { return b.from - a.from })
	out, begun := text, len(text)
	for _, e := range edits {
		if e.to > begun {
			continue // a literal in a literal that goes
		}
		begun = e.from
		out = append(append(append([]byte{}, out[:e.from]...), e.text...), out[e.to:]...)
	}
	if len(edits) > 0 {
		out = fmt.Appendf(out, "\nfunc %s[T any](T) (none T) { return none }\n\nvar _ = %[1]s[int]\n", none)
	}
	return out, nil
}

// dropped takes a field out of a literal. An expression stays where it is, for the names in
// it, and gives nothing.
func dropped(pair *ast.KeyValueExpr, at func(token.Pos) int, text []byte, none string) edit {
	if _, ok := pair.Value.(*ast.BasicLit); ok {
		to := at(pair.End())
		if rest := bytes.TrimLeft(text[to:], " \t"); bytes.HasPrefix(rest, []byte(",")) {
			to = len(text) - len(rest) + 1
		}
		return edit{at(pair.Pos()), to, ""}
	}
	from, to := at(pair.Value.Pos()), at(pair.Value.End())
	return edit{from, to, none + "(" + string(text[from:to]) + ")"}
}

func keyOf(pair *ast.KeyValueExpr) (string, bool) {
	if pair == nil {
		return "", false
	}
	key, ok := pair.Key.(*ast.Ident)
	if !ok {
		return "", false
	}
	return key.Name, true
}

// elementOf is the type of the elements of a literal.
func elementOf(of ast.Expr) ast.Expr {
	switch t := of.(type) {
	case *ast.ArrayType:
		return t.Elt
	case *ast.MapType:
		return t.Value
	}
	return nil
}

// nameOf is the name of a type, without its package.
func nameOf(of ast.Expr) string {
	switch t := of.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.SelectorExpr:
		return t.Sel.Name
	case *ast.StarExpr:
		return nameOf(t.X)
	}
	return ""
}
