package archtest

import (
	"go/ast"
	"testing"

	"github.com/stretchr/testify/require"
)

// pathPackage is where the paths of volumes in a launcher pod are joined, each in the
// file of its kind.
const pathPackage = "storage/volume"

func TestPathsOfVolumesAreJoinedInOnePlace(t *testing.T) {
	in := map[string][]string{"ContainerDisksDir": nil, "EphemeralDisksDir": nil}
	for _, f := range files(t) {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if _, is := in[s.Sel.Name]; is {
					require.Equal(t, pathPackage, f.Package(), "%s uses %s", f.Path, s.Sel.Name)
					in[s.Sel.Name] = append(in[s.Sel.Name], f.Path)
				}
			}
			return true
		})
	}
	for name, used := range in {
		require.Len(t, used, 1, name)
	}
}
