package vmi_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

func TestTheCommentOfATypeNamesTheFieldsThatItsObjectsAreSelectedBy(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	comments := map[string]string{}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE && len(g.Specs) == 1 {
				comments[g.Specs[0].(*ast.TypeSpec).Name.Name] = strings.ReplaceAll(g.Doc.Text(), "\n", " ")
			}
		}
	}
	selectable := 0
	for _, d := range vmi.Definitions() {
		selectable += len(d.Selectable)
		for _, field := range d.Selectable {
			require.Regexp(t, `A field selector may name [^:]*\b`+field+`\b`, comments[d.Kind], d.Kind)
		}
	}
	require.NotZero(t, selectable)
}
