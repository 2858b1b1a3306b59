package archtest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// bounding are the packages that call resource.ParseQuantity, which takes minutes for
// some texts of a few characters, and that bound the text before.
var bounding = []string{"internal/vmi/quantity", "vmi/decode"}

func TestQuantitiesAreBoundedBeforeTheyAreParsed(t *testing.T) {
	found := false
	for _, f := range files(t) {
		if strings.HasPrefix(f.Package(), "examples/") { // it parses what its own user types
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || s.Sel.Name != "ParseQuantity" {
				return true
			}
			found = true
			if !slices.Contains(bounding, f.Package()) {
				t.Errorf("%s uses resource.ParseQuantity; call quantity.Parse", f.Path)
			}
			return true
		})
	}
	if !found {
		t.Error("the name is not used at all: update this rule")
	}
}
