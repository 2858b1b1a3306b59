package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/launcher/protocol"
)

func TestWhatProcessorsGuestsCanHaveIsReadFromAFileOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(at("right"), []byte(`{"native":{"models":["Haswell"]},"later":1}`), 0o600))
	p, err := ReadProcessors(at("right"))
	require.NoError(t, err)
	require.Equal(t, &protocol.Processors{Native: protocol.Processor{Models: []string{"Haswell"}}}, p)

	require.NoError(t, os.Symlink(at("right"), at("link")))
	require.NoError(t, unix.Mkfifo(at("pipe"), 0o600))
	require.NoError(t, os.WriteFile(at("large"), []byte(`{"native":{"vendor":"`+strings.Repeat("a", maxProcessors)+`"}}`), 0o600))
	for _, name := range []string{"none", "link", "pipe", "large"} {
		p, err := ReadProcessors(at(name))
		require.ErrorContains(t, err, "read what processors guests can have", name)
		require.Nil(t, p)
	}
}
