package probe_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/storage/probe"
)

func TestTheContentOfASmallFileIsRead(t *testing.T) {
	dir := t.TempDir()
	// The kubelet mounts a key of a Secret as a link to a link.
	require.NoError(t, os.Mkdir(filepath.Join(dir, "..2026"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "..2026", "userdata"), []byte("#!/bin/sh"), 0o440))
	require.NoError(t, os.Symlink("..2026", filepath.Join(dir, "..data")))
	require.NoError(t, os.Symlink("..data/userdata", filepath.Join(dir, "userdata")))
	for name, tt := range map[string]struct {
		path, want string
		ok         bool
	}{
		"a key of a Secret": {filepath.Join(dir, "userdata"), "#!/bin/sh", true},
		"a missing key":     {filepath.Join(dir, "userData"), "", false},
		"a missing folder":  {filepath.Join(dir, "no", "userdata"), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok, err := probe.Content(tt.path)
			require.NoError(t, err)
			require.Equal(t, tt.ok, ok)
			require.Equal(t, tt.want, string(got))
		})
	}
}

func TestContentThatIsTooLargeOrNoFileIsAnErrorThatNamesThePath(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	require.NoError(t, os.WriteFile(large, make([]byte, probe.MaxContent+1), 0o600))
	for _, p := range []string{large, dir, "/dev/zero"} {
		_, _, err := probe.Content(p)
		require.ErrorContains(t, err, p)
	}
	require.NoError(t, os.Truncate(large, probe.MaxContent))
	got, ok, err := probe.Content(large)
	require.NoError(t, err)
	require.True(t, ok)
	require.Len(t, got, probe.MaxContent)
}

func ExampleContent() {
	content, ok, err := probe.Content("/no/such/secret/userdata")
	fmt.Println(len(content), ok, err)
	// Output: 0 false <nil>
}
