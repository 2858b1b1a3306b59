package image

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

func grown(path string, size int64) storage.Attachment {
	return storage.Attachment{Name: "data", Path: path, Format: storage.Raw, SizeBytes: size, Source: storage.Grown{}}
}

func TestADiskGrowsByZerosAndKeepsWhatIsOnIt(t *testing.T) {
	p := filepath.Join(t.TempDir(), "disk.img")
	require.NoError(t, os.WriteFile(p, []byte("content"), 0o600))
	require.NoError(t, Make(t.Context(), grown(p, 1<<20)))
	got, err := os.ReadFile(p)
	require.NoError(t, err)
	require.Equal(t, append([]byte("content"), make([]byte, 1<<20-7)...), got)

	require.NoError(t, Make(t.Context(), grown(p, 4096)))
	info, err := os.Stat(p)
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, info.Size(), "a disk is never shortened")
}

func TestAttackWhatIsNoFileDoesNotGrow(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	require.NoError(t, os.WriteFile(other, []byte("x"), 0o600))
	for name, make := range map[string]func(path string) error{
		"a link":   func(p string) error { return os.Symlink(other, p) },
		"a pipe":   func(p string) error { return unix.Mkfifo(p, 0o600) },
		"a folder": func(p string) error { return os.Mkdir(p, 0o700) },
		"nothing":  func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			p := filepath.Join(t.TempDir(), "disk.img")
			require.NoError(t, make(p))
			err := Make(t.Context(), grown(p, 4096))
			require.ErrorContains(t, err, "make disk of volume data at "+p)
			if name == "a link" {
				require.ErrorIs(t, err, vmi.ErrInvalid)
			}
		})
	}
	info, err := os.Stat(other)
	require.NoError(t, err)
	require.EqualValues(t, 1, info.Size())
}
