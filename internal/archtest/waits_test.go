package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What takes milliseconds on a quiet host may take many seconds on a busy one. A wait that
// ends when its condition holds costs nothing by a long limit.
func TestTestsWaitForAMinuteAtLeast(t *testing.T) {
	found := 0
	require.NoError(t, filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(p, "_test.go") {
			return err
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, p, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 4 {
				return true
			}
			s, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !strings.HasPrefix(s.Sel.Name, "Eventually") {
				return true
			}
			found++
			ast.Inspect(call.Args[2], func(n ast.Node) bool {
				if u, ok := n.(*ast.SelectorExpr); ok && (u.Sel.Name == "Second" || u.Sel.Name == "Millisecond") {
					t.Errorf("%s: the wait may last less than a minute", set.Position(call.Pos()))
				}
				return true
			})
			return true
		})
		return nil
	}))
	require.NotZero(t, found, "no test waits: update this rule")
}
