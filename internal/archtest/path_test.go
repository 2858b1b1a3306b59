package archtest

import (
	"go/ast"
	"testing"
)

// pathFile is where the paths of volumes in a launcher pod are joined.
const pathFile = "storage/volume/path.go"

func TestPathsOfVolumesAreJoinedInOnePlace(t *testing.T) {
	found := 0
	for _, f := range files(t) {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			switch s.Sel.Name {
			case "ContainerDisksDir", "EphemeralDisksDir", "CloudInitImage", "ConfigDriveImage":
				found++
				if f.Path != pathFile {
					t.Errorf("%s uses %s; only %s does", f.Path, s.Sel.Name, pathFile)
				}
			}
			return true
		})
	}
	if found == 0 {
		t.Error("the names are not used at all: update this rule")
	}
}
