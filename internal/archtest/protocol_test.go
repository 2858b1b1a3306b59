package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// apiWords are the files with words of the Kubernetes API that are also calls or streams,
// since those are named after them.
var apiWords = []string{"scheduler/subresource/route.go"}

// saidOnce are the types of the protocol whose words are in no other package.
var saidOnce = []string{"Call", "Stream", "EndReason"}

func TestAWordOfTheProtocolIsSaidOnce(t *testing.T) {
	all := files(t)
	words := map[string]string{}
	for _, f := range all {
		if f.Package() != "launcher/protocol" {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.ValueSpec); ok && len(s.Names) == 1 && len(s.Values) == 1 {
				typed, _ := s.Type.(*ast.Ident)
				if s.Names[0].Name == "StreamUpgrade" || typed != nil && slices.Contains(saidOnce, typed.Name) {
					words[text(t, s.Values[0])] = s.Names[0].Name
				}
			}
			return true
		})
	}
	require.GreaterOrEqual(t, len(words), 20)
	for _, f := range all {
		if side(f.Package()) == "" && tree(f.Path) != "cmd" || side(f.Package()) == "launcher" || slices.ContainsFunc(apiWords, func(p string) bool { return strings.HasPrefix(f.Path, p) }) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if name := words[text(t, l)]; name != "" {
					t.Errorf("%s types %s, which is protocol.%s", f.Path, l.Value, name)
				}
			}
			return true
		})
	}
}

// text is the value of a literal.
func text(t *testing.T, e ast.Expr) string {
	l, ok := e.(*ast.BasicLit)
	require.True(t, ok)
	s, err := strconv.Unquote(l.Value)
	require.NoError(t, err)
	return s
}
