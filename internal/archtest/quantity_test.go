package archtest

import (
	"go/ast"
	"strings"
	"testing"
)

// A text of a few characters takes resource.ParseQuantity minutes: quantity.Parse
// bounds it first.
func TestQuantitiesAreParsedInOnePlace(t *testing.T) {
	found := false
	for _, f := range files(t) {
		if strings.HasPrefix(f.Package(), "e2e") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || s.Sel.Name != "ParseQuantity" {
				return true
			}
			found = true
			if f.Package() != "vmi/quantity" {
				t.Errorf("%s uses resource.ParseQuantity; call quantity.Parse", f.Path)
			}
			return true
		})
	}
	if !found {
		t.Error("the name is not used at all: update this rule")
	}
}
