//go:build release

package release

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAReleaseIsTheSameBytesWhereverItIsMade(t *testing.T) {
	first, conf := madeOnce(t)
	conf.To = filepath.Join(t.TempDir(), "further", "two")
	require.NoError(t, os.MkdirAll(conf.To, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(conf.To, "old"), nil, 0o600))
	require.NoError(t, Make(t.Context(), conf))
	require.Equal(t, files(t, first), files(t, conf.To))
}
