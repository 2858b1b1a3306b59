package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// test is a test function, with what its package has for tests.
type test struct {
	// dir is the folder of its package, below that of the repository.
	dir string
	fn  *ast.FuncDecl
	in  *sources
}

// sources are the test files of a folder.
type sources struct {
	set  *token.FileSet
	text map[string][]byte // by file
	// functions are the functions and methods, by name.
	functions map[string][]*ast.FuncDecl
	// asserting are the names of those that assert something.
	asserting map[string]bool
}

// assertion is a piece of the source of a test that fails when something is not so.
type assertion struct {
	file     string // without its folder
	from, to int    // lines
	text     string // with one space for each white space
}

// readTests reads the test functions of the repository, by name.
func readTests(root string) (map[string]test, error) {
	out := map[string]test{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if n := d.Name(); n == "testdata" || n == "_output" || n != "." && n != ".." && strings.HasPrefix(n, ".") {
			return filepath.SkipDir
		}
		dir, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return addTests(out, root, dir)
	})
	return out, err
}

// addTests adds the test functions of a folder.
func addTests(to map[string]test, root, dir string) error {
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil {
		return err
	}
	s := &sources{set: token.NewFileSet(), text: map[string][]byte{}, functions: map[string][]*ast.FuncDecl{}, asserting: map[string]bool{}}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(s.set, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		s.text[name] = text
		s.addClosures(f)
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			s.functions[fn.Name.Name] = append(s.functions[fn.Name.Name], fn)
			if fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				to[fn.Name.Name] = test{dir, fn, s}
			}
		}
	}
	s.findAsserting()
	return nil
}

// addClosures adds the functions of the file that have the name of a variable.
func (s *sources) addClosures(f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok || len(a.Lhs) != 1 || len(a.Rhs) != 1 {
			return true
		}
		name, named := a.Lhs[0].(*ast.Ident)
		if fn, ok := a.Rhs[0].(*ast.FuncLit); ok && named {
			s.functions[name.Name] = append(s.functions[name.Name], &ast.FuncDecl{Name: name, Type: fn.Type, Body: fn.Body})
		}
		return true
	})
}

// findAsserting finds the functions that assert something, also by another one.
func (s *sources) findAsserting() {
	for before := -1; before != len(s.asserting); {
		before = len(s.asserting)
		for name, all := range s.functions {
			if slices.ContainsFunc(all, func(fn *ast.FuncDecl) bool { return s.asserts(fn.Body) }) {
				s.asserting[name] = true
			}
		}
	}
}

// asserts reports whether an assertion is in the node.
func (s *sources) asserts(n ast.Node) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			found = found || direct(n)
		case *ast.Ident:
			found = found || s.asserting[n.Name]
		}
		return !found
	})
	return found
}

// direct reports whether the call is one of testify's, or fails a test.
func direct(c *ast.CallExpr) bool {
	f, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of := ""
	if x, ok := f.X.(*ast.Ident); ok {
		of = x.Name
	}
	switch f.Sel.Name {
	case "Fatal", "Fatalf", "Error", "Errorf":
		return of != "fmt" && len(c.Args) > 0
	}
	return of == "require" || of == "assert"
}

// called is the name of the function that is called.
func called(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// assertions are those of the test and of the functions of its package that it calls.
func (t test) assertions() []assertion {
	var out []assertion
	reached := []*ast.FuncDecl{t.fn}
	for i := 0; i < len(reached); i++ {
		ast.Inspect(reached[i].Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				name := called(n)
				for _, fn := range t.in.functions[name] {
					if !slices.Contains(reached, fn) {
						reached = append(reached, fn)
					}
				}
				if direct(n) || t.in.asserting[name] {
					out = append(out, t.in.assertion(n, n))
				}
			case *ast.RangeStmt:
				// What a table holds is asserted by what goes through it.
				if table := tableOf(reached[i], n.X); table != nil && t.in.asserts(n.Body) {
					out = append(out, t.in.assertion(n, table))
				}
			}
			return true
		})
	}
	return out
}

// tableOf is the literal that is gone through: the expression itself, or what the function
// assigns to the variable.
func tableOf(fn *ast.FuncDecl, x ast.Expr) ast.Node {
	if literal, ok := x.(*ast.CompositeLit); ok {
		return literal
	}
	variable, ok := x.(*ast.Ident)
	if !ok {
		return nil
	}
	var found ast.Node
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok || len(a.Lhs) != 1 || len(a.Rhs) != 1 {
			return true
		}
		to, is := a.Lhs[0].(*ast.Ident)
		if literal, ok := a.Rhs[0].(*ast.CompositeLit); ok && is && to.Name == variable.Name {
			found = literal
		}
		return true
	})
	return found
}

// assertion is that of a statement, with the text of a part of it.
func (s *sources) assertion(statement, part ast.Node) assertion {
	from, to := s.set.Position(statement.Pos()), s.set.Position(statement.End())
	text := s.text[from.Filename][s.set.Position(part.Pos()).Offset:s.set.Position(part.End()).Offset]
	return assertion{filepath.Base(from.Filename), from.Line, to.Line, oneSpace(string(text))}
}

func oneSpace(s string) string { return strings.Join(strings.Fields(s), " ") }

var errNotThere = errors.New("no assertion of the test, or of what it calls in its package, has this in its source")

// requiring are the assertions of the test that have the piece in their source.
func (t test) requiring(piece string) ([]assertion, error) {
	found := slices.DeleteFunc(t.assertions(), func(a assertion) bool { return !strings.Contains(a.text, oneSpace(piece)) })
	if piece == "" || len(found) == 0 {
		return nil, errNotThere
	}
	return found, nil
}
