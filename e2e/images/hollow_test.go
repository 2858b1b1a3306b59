package images

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
)

// Any program of the system will do that is linked with a library that it does not
// call for what it is asked here.
func TestAHollowLibraryKeepsItsNamesAndVersionsAndSatisfiesTheLoader(t *testing.T) {
	t.Parallel()
	program := testenv.Program(t, "/usr/bin/dpkg-deb")
	original, err := os.ReadFile(testenv.File(t, "/lib/x86_64-linux-gnu/liblzma.so.5"))
	require.NoError(t, err)
	body, err := Hollow{Library: "liblzma.so.5", Returns: 5}.body()
	require.NoError(t, err)
	made, err := hollow(original, body, true)
	require.NoError(t, err)
	require.Less(t, len(made), len(original)/3)

	was, err := elf.NewFile(bytes.NewReader(original))
	require.NoError(t, err)
	is, err := elf.NewFile(bytes.NewReader(made))
	require.NoError(t, err)
	needs, err := is.ImportedLibraries()
	require.NoError(t, err)
	require.Empty(t, needs)
	require.NotNil(t, was.Section(".gnu.version_d"), "the library of this test is to have versions")

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "liblzma.so.5"), made, 0o755))
	cmd := exec.Command(program, "--version")
	cmd.Env = []string{"LD_LIBRARY_PATH=" + dir, "LD_BIND_NOW=1"}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.NotContains(t, string(out), "version information")
}

func TestWhatIsNoLibraryCannotBeHollowedOut(t *testing.T) {
	t.Parallel()
	_, err := hollow([]byte("#!/bin/sh\n"), nil, true)
	require.Error(t, err)
	_, err = Hollow{Library: "a", Data: "nosuch"}.body()
	require.Error(t, err)
	require.ErrorContains(t, hollowOut(tree{}, []Hollow{{Library: "liba.so"}}), "is not in the packages")
}

func FuzzHollow(f *testing.F) {
	if b, err := os.ReadFile("/lib/x86_64-linux-gnu/libnss_files.so.2"); err == nil {
		f.Add(b)
	}
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = hollow(b, []byte{0xc3}, true)
	})
}
