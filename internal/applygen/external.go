package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	corePath      = "k8s.io/api/core/v1"
	coreApplyPath = "k8s.io/client-go/applyconfigurations/core/v1"
)

// externals are the types of core/v1 that the source has and that client-go has apply
// configurations of, each with the package of these, as controller-gen takes them.
func externals() ([]string, error) {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", coreApplyPath).Output()
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", coreApplyPath, err)
	}
	files, err := filepath.Glob(filepath.Join(source, "*.go"))
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		if err := coreTypes(string(b), used); err != nil {
			return nil, err
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(used)) {
		// client-go has a file for each.
		_, err := os.Stat(filepath.Join(strings.TrimSpace(string(dir)), strings.ToLower(name)+".go"))
		switch {
		case errors.Is(err, fs.ErrNotExist): // a text or a map
		case err != nil:
			return nil, err
		default:
			out = append(out, corePath+"."+name+"@"+coreApplyPath)
		}
	}
	return out, nil
}

// coreTypes adds the names that a file has of core/v1.
func coreTypes(text string, to map[string]bool) error {
	f, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	imported := ""
	for _, i := range f.Imports {
		if p, err := strconv.Unquote(i.Path.Value); err == nil && p == corePath && i.Name != nil {
			imported = i.Name.Name
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == imported {
				to[s.Sel.Name] = true
			}
		}
		return true
	})
	return nil
}
