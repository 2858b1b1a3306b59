package images

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	// manifest matches a manifest in a page for users.
	manifest = regexp.MustCompile("(?s)```yaml\n(.*?)```")
	// imageOf matches the name of an image in a line of a manifest.
	imageOf = regexp.MustCompile(`\b(?:image|reference): "?([^\s"{}]+)`)
)

// ofTheReader begins what stands beside an image that the reader replaces.
const ofTheReader = "# an image of yours"

func TestTheManifestsOfTheDocsNameImagesOfTheLocalClusterOrSayThatTheyDoNot(t *testing.T) {
	t.Parallel()
	var local []string
	for _, name := range Names() {
		local = append(local, Reference(name))
	}
	texts := map[string][]string{}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range manifest.FindAllStringSubmatch(string(text), -1) {
			texts[page] = append(texts[page], m[1])
		}
	}
	examples, err := filepath.Glob(filepath.Join(root, "examples", "*.yaml"))
	require.NoError(t, err)
	for _, file := range examples {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		texts[file] = []string{string(text)}
	}
	found := 0
	for page, all := range texts {
		for line := range strings.Lines(strings.Join(all, "\n")) {
			m := imageOf.FindStringSubmatch(line)
			if m == nil || strings.HasPrefix(strings.TrimSpace(line), "#") {
				continue
			}
			found++
			require.NotEqual(t, slices.Contains(local, m[1]), strings.Contains(line, ofTheReader),
				"%s: %s is no image of the local cluster, %q, and has no %q beside it, or has it for nothing", page, m[1], local, ofTheReader)
		}
	}
	require.Greater(t, found, 20)
}
