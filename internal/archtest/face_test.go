package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mostPublic is how many lines `go doc -short` has for what is written by hand in the public
// packages, without those that are indented: one for each type, and for each function,
// variable and group of constants that belongs to no type. A package that no importer needs,
// or a name that only one other package of the module uses, goes below internal, so the
// number rises only with a capability. What is generated has the form of its generator, and
// is not counted.
const mostPublic = 866

// public reports whether an importer can use the package.
func public(f File) bool {
	return f.syntax.Name.Name != "main" && !strings.HasPrefix(f.Package(), "internal/")
}

// face are the types of a public package, and its exported functions, variables and
// constants. It is keyed by the package.
type face struct {
	types  map[string]bool
	others []ast.Node
}

func faces(t *testing.T) map[string]*face {
	all := map[string]*face{}
	for _, f := range files(t) {
		if !public(f) || ast.IsGenerated(f.syntax) {
			continue
		}
		p := all[f.Package()]
		if p == nil {
			p = &face{types: map[string]bool{}}
			all[f.Package()] = p
		}
		for _, d := range f.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.IsExported() {
					p.others = append(p.others, d)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok && s.Name.IsExported() {
						p.types[s.Name.Name] = true
					}
				}
				if d.Tok != token.TYPE && slices.ContainsFunc(d.Specs, exportsValue) {
					p.others = append(p.others, d)
				}
			}
		}
	}
	return all
}

// exportsValue reports whether a constant or variable of the line is exported.
func exportsValue(s ast.Spec) bool {
	v, ok := s.(*ast.ValueSpec)
	return ok && slices.ContainsFunc(v.Names, (*ast.Ident).IsExported)
}

// lines is how many lines of `go doc -short` are not indented.
func (p *face) lines() int {
	n := len(p.types)
	for _, d := range p.others {
		if !p.belongs(d) {
			n++
		}
	}
	return n
}

// belongs reports whether `go doc` shows a declaration below a type of the package: a
// function that returns it, and no other one of the package, or constants of it.
func (p *face) belongs(d ast.Node) bool {
	switch d := d.(type) {
	case *ast.FuncDecl:
		of := map[string]bool{}
		if d.Type.Results != nil {
			for _, r := range d.Type.Results.List {
				if name := ownName(r.Type); p.types[name] {
					of[name] = true
				}
			}
		}
		return len(of) == 1
	case *ast.GenDecl:
		for _, s := range d.Specs {
			if v, ok := s.(*ast.ValueSpec); ok && v.Type != nil && p.types[ownName(v.Type)] {
				return true
			}
		}
	}
	return false
}

// ownName is the name of a type of the same package, through pointers, lists and type
// arguments.
func ownName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return ownName(e.X)
	case *ast.ArrayType:
		return ownName(e.Elt)
	case *ast.IndexExpr:
		return ownName(e.X)
	case *ast.IndexListExpr:
		return ownName(e.X)
	}
	return ""
}

func TestThePublicFaceDoesNotGrow(t *testing.T) {
	n := 0
	for _, p := range faces(t) {
		n += p.lines()
	}
	require.LessOrEqual(t, n, mostPublic, "unexport what one other package uses, or move it below internal; lower mostPublic when the number has fallen")
	require.Greater(t, n, mostPublic-25, "lower mostPublic to %d", n)
}

// hidden are the types below internal that a public name may have: an alias gives them a
// name that an importer can write.
var hidden = []string{"launcher/domain PCIAddress"}

func TestAPublicNameHasNoTypeThatAnImporterCannotName(t *testing.T) {
	used := map[string]bool{}
	for _, f := range files(t) {
		if !public(f) {
			continue
		}
		below := map[string]bool{}
		for _, i := range f.syntax.Imports {
			if p := strings.Trim(i.Path.Value, `"`); strings.HasPrefix(p, Module+"/internal/") {
				name := path.Base(p)
				if i.Name != nil {
					name = i.Name.Name
				}
				below[name] = true
			}
		}
		for what, e := range exposed(f) {
			ast.Inspect(e, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := s.X.(*ast.Ident); ok && below[x.Name] {
					at := f.Package() + " " + what
					used[at] = true
					if !slices.Contains(hidden, at) {
						t.Errorf("%s: %s has the type %s.%s, which is below internal", f.Path, what, x.Name, s.Sel.Name)
					}
				}
				return true
			})
		}
	}
	for _, h := range hidden {
		require.True(t, used[h], "%s is in the list of exceptions, and needs to be no more", h)
	}
}

// exposed are the types that an importer sees of the file, by the name that has them: of
// exported functions and methods, of exported fields and methods of exported types, and of
// exported variables.
func exposed(f File) map[string]ast.Node {
	out := map[string]ast.Node{}
	for _, d := range f.syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(ownName(d.Recv.List[0].Type))) {
				out[d.Name.Name] = d.Type
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					if s.Type != nil && exportsValue(s) {
						out[s.Names[0].Name] = s.Type
					}
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						exposedOf(s.Name.Name, s.Type, out)
					}
				}
			}
		}
	}
	return out
}

// exposedOf adds what a type exposes.
func exposedOf(name string, e ast.Expr, out map[string]ast.Node) {
	var fields *ast.FieldList
	switch e := e.(type) {
	case *ast.StructType:
		fields = e.Fields
	case *ast.InterfaceType:
		fields = e.Methods
	default:
		out[name] = e
		return
	}
	for _, f := range fields.List {
		switch {
		case len(f.Names) == 0:
			out[name+"."+ownName(f.Type)] = f.Type
		case f.Names[0].IsExported():
			out[name+"."+f.Names[0].Name] = f.Type
		}
	}
}
