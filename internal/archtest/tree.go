package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Module is the path of the module under test.
const Module = "github.com/podvisor/podvisor"

// File is a Go file of the module that is not a test, with its imports.
type File struct {
	// Path is the file's path from the root, with slashes.
	Path    string
	Imports []string
	syntax  *ast.File
}

// Package is the file's package as a path from the root.
func (f File) Package() string { return path.Dir(f.Path) }

// Files reads all Go files below root that are part of its module: no tests,
// no testdata, no nested modules.
func Files(root string) ([]File, error) {
	var out []File
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			return skip(root, p, e.Name())
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		f, err := read(root, p)
		if err == nil {
			out = append(out, f)
		}
		return err
	})
	return out, err
}

func skip(root, p, name string) error {
	if p == root {
		return nil
	}
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func read(root, p string) (File, error) {
	s, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return File{}, err
	}
	rel, err := filepath.Rel(root, p)
	if err != nil {
		return File{}, err
	}
	f := File{Path: filepath.ToSlash(rel), syntax: s}
	for _, i := range s.Imports {
		name, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return File{}, err
		}
		f.Imports = append(f.Imports, name)
	}
	return f, nil
}

// filled counts the composite literals of the type pkg.name in the file that
// have content, as in libvirtxml.DomainDisk{Device: "disk"}. An empty literal
// only names the type, as for decoding.
func (f File) filled(pkg, name string) int {
	n := 0
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		l, ok := node.(*ast.CompositeLit)
		if !ok || len(l.Elts) == 0 {
			return true
		}
		if s, ok := l.Type.(*ast.SelectorExpr); ok && s.Sel.Name == name {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == pkg {
				n++
			}
		}
		return true
	})
	return n
}

// calls lists the calls of pkg.name in the file, for each of the names.
func (f File) calls(pkg string, names ...string) []string {
	var out []string
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		c, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		if s, ok := c.Fun.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == pkg && slices.Contains(names, s.Sel.Name) {
				out = append(out, pkg+"."+s.Sel.Name)
			}
		}
		return true
	})
	return out
}
