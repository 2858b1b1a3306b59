package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// model is what the source says about the types beyond their schema.
type model struct {
	// types are by their names.
	types map[string]*goType
	// packages are the names of the packages that were read.
	packages map[string]bool
}

// goType is a type of the package.
type goType struct {
	name     string
	unserved string
	// basic is the type of the language that it is made of, or "".
	basic string
	// fields are those of a struct by their JSON names, inlined ones included.
	fields map[string]*goField
	unions []union
	// enum says that the constants are the values, which are served or not, in
	// order.
	enum    bool
	values  []string
	unbuilt []unbuilt

	inline []string
	// outside are the inlined types of other packages, as far as markers say
	// something about their fields.
	outside []*goField
}

// unbuilt is a value of an enumeration that is not served.
type unbuilt struct{ value, why string }

// goField is a field of a struct.
type goField struct {
	// elem is the type of the field, or of its elements. It is qualified for a
	// type of another package, and "" for one of the language.
	elem string
	// basic is the type of the language behind elem, or "".
	basic string
	// name is the field's name in Go.
	name              string
	unserved, refused string
	// unbuilt are values of a word that are not served.
	unbuilt []unbuilt
	// inner are markers of fields below.
	inner []innerMark
}

// innerMark is a marker of a field of the type of another field: one of another package,
// whose source has no markers, or one that is served elsewhere.
type innerMark struct {
	// path are the JSON names that lead to the field.
	path              []string
	unserved, refused string
}

// hidden says that the field is not served, and why.
func (f *goField) hidden() string { return f.unserved + f.refused }

// below is the field of that JSON name in a type of another package, as far as
// markers of f say something about it: nil if they do not.
func (f *goField) below(name string) *goField {
	if f == nil {
		return nil
	}
	var out *goField
	for _, m := range f.inner {
		if m.path[0] != name {
			continue
		}
		if out == nil {
			out = &goField{}
		}
		if len(m.path) == 1 {
			out.unserved, out.refused = m.unserved, m.refused
			continue
		}
		m.path = m.path[1:]
		out.inner = append(out.inner, m)
	}
	return out
}

// typeOf is the type of the field, with what markers of the field say of the fields of the
// type. Nil: it is of another package, or of the language.
func (m *model) typeOf(f *goField) *goType {
	t := m.types[f.elem]
	if t == nil || len(f.inner) == 0 {
		return t
	}
	out := *t
	out.fields = maps.Clone(t.fields)
	for _, k := range f.inner {
		was := out.fields[k.path[0]]
		if was == nil {
			continue // prune reports it
		}
		now, name := *was, k.path[0]
		if k.path = k.path[1:]; len(k.path) == 0 {
			now.unserved, now.refused = k.unserved, k.refused
		} else {
			now.inner = append(slices.Clone(was.inner), k)
		}
		out.fields[name] = &now
	}
	return &out
}

// union is a rule about how many of some fields are set.
type union struct {
	rule    string
	members []string
	message string
}

// readModel reads the packages of the model. No two have a type of one name.
func readModel(groups []group) (*model, error) {
	m := &model{types: map[string]*goType{}, packages: map[string]bool{}}
	var parsed []*ast.File
	for _, g := range groups {
		files, err := parse(g.dir)
		if err != nil {
			return nil, err
		}
		m.packages[g.pkg()] = true
		parsed = append(parsed, files...)
	}
	for _, f := range parsed {
		if err := m.declareTypes(f); err != nil {
			return nil, err
		}
	}
	for _, f := range parsed {
		m.declareConstants(f)
	}
	for _, t := range m.types {
		m.flatten(t)
	}
	return m, nil
}

// parse parses the Go files of a folder.
func parse(dir string) ([]*ast.File, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var parsed []*ast.File
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(filepath.Base(name), "zz_") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, f)
	}
	return parsed, nil
}

// serveAll takes all fields, kinds and constants that are not served for served.
func (m *model) serveAll() {
	for _, t := range m.types {
		t.unserved = ""
		for _, u := range t.unbuilt {
			t.values = append(t.values, u.value)
		}
		t.unbuilt = nil
		for _, f := range t.fields {
			f.serveAll()
		}
		for _, f := range t.outside {
			f.serveAll()
		}
	}
}

func (f *goField) serveAll() {
	f.unserved, f.unbuilt = "", nil
	for i := range f.inner {
		f.inner[i].unserved = ""
	}
}

func (m *model) declareTypes(f *ast.File) error {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE {
			continue
		}
		for _, s := range g.Specs {
			spec := s.(*ast.TypeSpec)
			doc := spec.Doc
			if doc == nil {
				doc = g.Doc
			}
			t, err := m.readType(spec, readMarkers(doc))
			if err != nil {
				return err
			}
			if m.types[t.name] != nil {
				return fmt.Errorf("type %s: it is in two packages", t.name)
			}
			m.types[t.name] = t
		}
	}
	return nil
}

func (m *model) readType(spec *ast.TypeSpec, marks []marker) (*goType, error) {
	t := &goType{name: spec.Name.Name, fields: map[string]*goField{}}
	for _, k := range marks {
		switch k.name {
		case "unserved":
			t.unserved = k.value
		case "enum":
			t.enum = true
		case "exactlyOne:of", "atMostOne:of", "atLeastOne:of":
			u, err := readUnion(k)
			if err != nil {
				return nil, fmt.Errorf("type %s: %w", t.name, err)
			}
			t.unions = append(t.unions, u)
		default:
			return nil, fmt.Errorf("type %s: unknown marker %s", t.name, k.name)
		}
	}
	s, ok := spec.Type.(*ast.StructType)
	if !ok {
		t.basic = basic(spec.Type)
		return t, nil
	}
	for _, f := range s.Fields.List {
		if err := m.readField(t, f); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (m *model) readField(t *goType, f *ast.Field) error {
	if f.Tag == nil {
		return nil
	}
	tag, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return err
	}
	name, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	elem := element(f.Type)
	if pkg, own, qualified := strings.Cut(elem, "."); qualified && m.packages[pkg] {
		elem = own
	}
	out := &goField{elem: elem, basic: basic(f.Type), name: goName(f)}
	if err := out.readMarkers(readMarkers(f.Doc)); err != nil {
		return fmt.Errorf("field %s of %s: %w", cmp.Or(name, elem), t.name, err)
	}
	if name == "" && strings.Contains(options, "inline") {
		return t.readInlined(out)
	}
	t.fields[name] = out
	return nil
}

// readInlined adds an inlined struct.
func (t *goType) readInlined(f *goField) error {
	if f.elem != "" {
		t.inline = append(t.inline, f.elem)
	}
	switch outside := strings.Contains(f.elem, "."); {
	case f.hidden() != "", len(f.inner) > 0 && !outside:
		return fmt.Errorf("field %s of %s: it is inlined: the markers belong to its fields", f.elem, t.name)
	case len(f.inner) > 0:
		t.outside = append(t.outside, f)
	}
	return nil
}

func (f *goField) readMarkers(marks []marker) error {
	for _, k := range marks {
		what, path, isInner := strings.Cut(k.name, ":")
		m := innerMark{path: strings.Split(path, ".")}
		switch what {
		case "unserved":
			m.unserved = k.value
		case "refused":
			m.refused = k.value
		case "unservedValues":
			values, why, _ := strings.Cut(k.value, ",")
			for _, v := range strings.Split(values, ";") {
				f.unbuilt = append(f.unbuilt, unbuilt{v, why})
			}
			continue
		default:
			return fmt.Errorf("unknown marker %s", k.name)
		}
		if isInner {
			f.inner = append(f.inner, m)
		} else {
			f.unserved, f.refused = m.unserved, m.refused
		}
	}
	return nil
}

// below is the field of that JSON name in an inlined struct of another package, as
// far as markers say something about it: nil if they do not.
func (t *goType) below(name string) *goField {
	for _, in := range t.outside {
		if f := in.below(name); f != nil {
			return f
		}
	}
	return nil
}

// field is the field of that JSON name, as far as something is known of it.
func (t *goType) field(name string) *goField {
	if f := t.fields[name]; f != nil {
		return f
	}
	return t.below(name)
}

func goName(f *ast.Field) string {
	if len(f.Names) == 0 {
		return ""
	}
	return f.Names[0].Name
}

// behind is the type behind pointers, lists and maps.
func behind(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.StarExpr:
		return behind(e.X)
	case *ast.ArrayType:
		return behind(e.Elt)
	case *ast.MapType:
		return behind(e.Value)
	}
	return e
}

// basic is the name of the type of the language behind pointers, lists and maps, or
// "" if it is none.
func basic(e ast.Expr) string {
	if id, ok := behind(e).(*ast.Ident); ok && !ast.IsExported(id.Name) {
		return id.Name
	}
	return ""
}

// element is the type behind pointers, lists and maps: its name, with that of its
// package if it is of another one, or "" if it is of the language.
func element(e ast.Expr) string {
	switch e := behind(e).(type) {
	case *ast.SelectorExpr:
		if pkg, ok := e.X.(*ast.Ident); ok {
			return pkg.Name + "." + e.Sel.Name
		}
	case *ast.Ident:
		if ast.IsExported(e.Name) {
			return e.Name
		}
	}
	return ""
}

// flatten adds the fields of inlined structs to t. Of those of other packages only
// what markers say is known.
func (m *model) flatten(t *goType) {
	for _, name := range t.inline {
		in := m.types[name]
		if in == nil {
			continue
		}
		m.flatten(in)
		for n, f := range in.fields {
			t.fields[n] = f
		}
		t.unions = append(t.unions, in.unions...)
		t.outside = append(t.outside, in.outside...)
	}
	t.inline = nil
}

// declareConstants collects the values of the enumerations.
func (m *model) declareConstants(f *ast.File) {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			spec := s.(*ast.ValueSpec)
			id, ok := spec.Type.(*ast.Ident)
			if !ok || len(spec.Values) != 1 || m.types[id.Name] == nil || !m.types[id.Name].enum {
				continue
			}
			lit, ok := spec.Values[0].(*ast.BasicLit)
			if !ok {
				continue
			}
			v, err := strconv.Unquote(lit.Value)
			if err != nil {
				continue
			}
			t, marks := m.types[id.Name], readMarkers(spec.Doc)
			if i := slices.IndexFunc(marks, func(k marker) bool { return k.name == "unserved" }); i >= 0 {
				t.unbuilt = append(t.unbuilt, unbuilt{v, marks[i].value})
				continue
			}
			t.values = append(t.values, v)
		}
	}
}

// marker is a line of a comment that begins with +podvisor:.
type marker struct{ name, value string }

func readMarkers(doc *ast.CommentGroup) []marker {
	if doc == nil {
		return nil
	}
	var out []marker
	for _, c := range doc.List {
		text, ok := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(c.Text, "//")), "+podvisor:")
		if !ok {
			continue
		}
		name, value, _ := strings.Cut(text, "=")
		out = append(out, marker{name: name, value: value})
	}
	return out
}

func readUnion(k marker) (union, error) {
	list, rest, ok := strings.Cut(k.value, ",message=")
	if !ok {
		return union{}, fmt.Errorf("marker %s has no message", k.name)
	}
	message, err := strconv.Unquote(rest)
	if err != nil {
		return union{}, fmt.Errorf("marker %s: message %s: %w", k.name, rest, err)
	}
	return union{rule: strings.TrimSuffix(k.name, ":of"), members: strings.Split(list, ";"), message: message}, nil
}
