package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// packageRow is a row of docs/architecture.md that is about a package: its path, its
// kind and what it is for.
var packageRow = regexp.MustCompile("(?m)^\\| `([a-z0-9./-]+)` \\| (core|edge|controller|binary|internal) \\| (.*) \\|$")

func TestThePageOfTheArchitectureNamesEveryPackageOnceWithItsKind(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/architecture.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## Packages\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	named := map[string]Layer{}
	for _, row := range packageRow.FindAllStringSubmatch(section, -1) {
		require.Empty(t, named[row[1]], "docs/architecture.md names %s twice", row[1])
		require.NotEmpty(t, row[3], "docs/architecture.md does not say what %s is for", row[1])
		named[row[1]] = Layer(row[2])
	}
	there := map[string]bool{}
	for _, f := range files(t) {
		p := f.Package()
		there[p] = true
		require.NotEmpty(t, named[p], "docs/architecture.md does not name %s", p)
		if !edgeFiles[f.Path] {
			require.Equal(t, LayerOf(f), named[p], "docs/architecture.md gives %s another kind than layer.go", p)
		}
	}
	for p := range named {
		require.True(t, there[p], "docs/architecture.md names %s, which does not exist", p)
	}
}
