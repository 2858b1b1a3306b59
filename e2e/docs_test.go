package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// manifestIn matches a manifest in a page for users.
var manifestIn = regexp.MustCompile("(?s)```yaml\n(apiVersion: .*?)```")

// All of them are given to one kubectl, which names the file of each that is refused: it asks the
// API server first for what it has, for some seconds where that is busy.
func TestTheManifestsOfTheDocsAreAccepted(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.endTurn() // nothing boots
	pages, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	dir, found := t.TempDir(), 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range manifestIn.FindAllStringSubmatch(string(text), -1) {
			found++
			file := fmt.Sprintf("%s-%02d.yaml", filepath.Base(page), found)
			require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(m[1]), 0o600))
		}
	}
	require.NotZero(t, found)
	_, err = world.kubectl.Run(t.Context(), "apply", "--dry-run=server", "-f", dir)
	require.NoError(t, err)
}
