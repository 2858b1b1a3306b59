package fake

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var listKey = regexp.MustCompile(`\+listMapKey=(\w+)`)

// marked are the merged lists as the markers of package vmi have them.
func marked(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	paths, err := filepath.Glob("../../*.go")
	require.NoError(t, err)
	for _, p := range paths {
		f, err := goparser(p)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					addMarked(out, spec.Name.Name, field)
				}
			}
			return false
		})
	}
	return out
}

func goparser(path string) (*ast.File, error) {
	return parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
}

func addMarked(out map[string][]string, of string, f *ast.Field) {
	doc := ""
	if f.Doc != nil {
		for _, c := range f.Doc.List {
			doc += c.Text + "\n"
		}
	}
	if !strings.Contains(doc, "+listType=map") && !strings.Contains(doc, "+listType=set") {
		return
	}
	keys := []string{}
	for _, m := range listKey.FindAllStringSubmatch(doc, -1) {
		keys = append(keys, m[1])
	}
	out[of+"."+f.Names[0].Name] = keys
}

func TestListsAreMergedAsTheirMarkersSay(t *testing.T) {
	want := marked(t)
	want["ObjectMeta.Finalizers"], want["ObjectMeta.OwnerReferences"] = []string{}, []string{"uid"}
	require.Equal(t, want, merged)
}

func TestEveryTypeHasOneSchema(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range schemas().Schema.Types {
		require.False(t, seen[d.Name], "two schemas are called %s", d.Name)
		seen[d.Name] = true
	}
	require.True(t, seen["VirtualMachineInstance"])
}
