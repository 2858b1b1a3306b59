package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// Sealed is an interface with one unexported method of its own, which takes and
// returns nothing: only types of its own package implement it. The actions of a
// plan are such types. What it embeds does not matter.
type Sealed struct {
	// Package is the path of its package from the root; Name is its name.
	Package, Name string
	// Types are the names of the types that implement it.
	Types []string
}

func (s Sealed) String() string { return s.Package + "." + s.Name }

// SealedIn finds the sealed interfaces of the files, with the types that
// implement them by a method of their own or of what they embed.
func SealedIn(files []File) []Sealed {
	var out []Sealed
	for _, f := range files {
		f.types(func(t *ast.TypeSpec) {
			if method := sealing(t); method != "" {
				out = append(out, Sealed{f.Package(), t.Name.Name, implementing(files, f.Package(), method)})
			}
		})
	}
	return out
}

// types calls do with each type that the file declares.
func (f File) types(do func(*ast.TypeSpec)) {
	for _, d := range f.syntax.Decls {
		if g, ok := d.(*ast.GenDecl); ok {
			for _, s := range g.Specs {
				if t, ok := s.(*ast.TypeSpec); ok {
					do(t)
				}
			}
		}
	}
}

// sealing is the name of the method that seals the interface, or "".
func sealing(t *ast.TypeSpec) string {
	i, ok := t.Type.(*ast.InterfaceType)
	if !ok {
		return ""
	}
	own := slices.DeleteFunc(slices.Clone(i.Methods.List), func(f *ast.Field) bool { return len(f.Names) == 0 })
	if len(own) != 1 {
		return ""
	}
	name := own[0].Names[0]
	f, ok := own[0].Type.(*ast.FuncType)
	if !ok || name.IsExported() || f.Params.NumFields()+f.Results.NumFields() > 0 {
		return ""
	}
	return name.Name
}

// implementing are the names of the package's types that have the method.
func implementing(files []File, pkg, method string) []string {
	found := map[string]bool{}
	for _, f := range files {
		if f.Package() != pkg {
			continue
		}
		for _, d := range f.syntax.Decls {
			if m, ok := d.(*ast.FuncDecl); ok && m.Recv != nil && m.Name.Name == method {
				found[typeName(m.Recv.List[0].Type)] = true
			}
		}
	}
	for more := true; more; {
		more = false
		for _, f := range files {
			if f.Package() != pkg {
				continue
			}
			f.types(func(t *ast.TypeSpec) {
				if s, ok := t.Type.(*ast.StructType); ok && !found[t.Name.Name] && embeds(s, found) {
					found[t.Name.Name], more = true, true
				}
			})
		}
	}
	var out []string
	for name := range found {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func embeds(s *ast.StructType, names map[string]bool) bool {
	return slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool { return len(f.Names) == 0 && names[typeName(f.Type)] })
}

// typeName is the name of a type as it is written, with its package and without
// pointers and type arguments.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		return typeName(e.X) + "." + e.Sel.Name
	}
	return ""
}

// Unhandled finds what the file's type switches over the interface lack: a case
// for each type, and a default that makes an error. It returns how many switches
// there are.
func (f File) Unhandled(s Sealed) (switches int, faults []string) {
	prefix := ""
	if f.Package() != s.Package {
		if prefix = f.nameOf(s.Package); prefix == "" {
			return 0, nil
		}
		prefix += "."
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		sw, ok := n.(*ast.TypeSwitchStmt)
		if !ok {
			return true
		}
		missing, fallback := slices.Clone(s.Types), false
		for _, c := range sw.Body.List {
			c := c.(*ast.CaseClause)
			fallback = fallback || c.List == nil && makesError(c)
			for _, e := range c.List {
				missing = slices.DeleteFunc(missing, func(t string) bool { return prefix+t == typeName(e) })
			}
		}
		if len(missing) == len(s.Types) {
			return true // it is about something else
		}
		switches++
		if len(missing) > 0 {
			faults = append(faults, fmt.Sprintf("%s: a type switch over %s has no case for %s", f.Path, s, strings.Join(missing, ", ")))
		}
		if !fallback {
			faults = append(faults, fmt.Sprintf("%s: a type switch over %s has no default that makes an error", f.Path, s))
		}
		return true
	})
	return switches, faults
}

// nameOf is the name that the file has for the package of this module, or "" if
// it does not import it.
func (f File) nameOf(pkg string) string {
	for _, i := range f.syntax.Imports {
		if i.Path.Value != `"`+Module+"/"+pkg+`"` {
			continue
		}
		if i.Name != nil {
			return i.Name.Name
		}
		return path.Base(pkg)
	}
	return ""
}

// makesError reports whether the clause calls fmt.Errorf or errors.New.
func makesError(c *ast.CaseClause) bool {
	found := false
	ast.Inspect(c, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			name := typeName(call.Fun)
			found = found || name == "fmt.Errorf" || name == "errors.New"
		}
		return true
	})
	return found
}
