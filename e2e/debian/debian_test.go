package debian

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
)

func TestInstalled(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, list string
		want       []string
	}{
		{"no output means that nothing is installed", "", nil},
		{"a package with only its configuration left is not installed", "a installed\nb config-files\nc not-installed\n", []string{"a"}},
		{"an architecture is not part of the name", "libc6 installed\n", []string{"libc6"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, installed(tt.list))
		})
	}
}

func TestEnsure(t *testing.T) {
	t.Parallel()
	testenv.Program(t, "dpkg-query")

	t.Run("what is there costs nothing and says nothing", func(t *testing.T) {
		var out strings.Builder
		require.NoError(t, Ensure(t.Context(), &out, "dpkg", "libc6"))
		require.Empty(t, out.String())
	})
	t.Run("an unknown package is missing", func(t *testing.T) {
		lack, err := Missing(t.Context(), "dpkg", "no-such-package-of-podvisor")
		require.NoError(t, err)
		require.Equal(t, []string{"no-such-package-of-podvisor"}, lack)
	})
}

func TestMissingErrorNamesTheCommand(t *testing.T) {
	t.Parallel()
	err := &MissingError{Packages: []string{"nftables", "gcc"}, Reason: "installing needs root"}
	require.EqualError(t, err, "missing Debian packages: nftables gcc (installing needs root); "+
		"install them with: apt-get install --no-install-recommends nftables gcc")
}
