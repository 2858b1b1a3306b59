package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// manifestIn matches a manifest in a page for users.
var manifestIn = regexp.MustCompile("(?s)```yaml\n(apiVersion: .*?)```")

func TestTheManifestsOfTheDocsAreAccepted(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.endTurn() // nothing boots
	pages, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range manifestIn.FindAllStringSubmatch(string(text), -1) {
			found++
			_, err := world.kubectl.RunInput(s.t.Context(), strings.NewReader(m[1]), "apply", "--dry-run=server", "-f", "-")
			require.NoError(t, err, "%s:\n%s", page, m[1])
		}
	}
	require.NotZero(t, found)
}
