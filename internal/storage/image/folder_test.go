package image

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// mounted is a folder as the kubelet mounts a ConfigMap: each name is a link to a file
// in a folder that a link leads to.
func mounted(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Symlink("..2026_11_22", filepath.Join(dir, "..data")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "..2026_11_22"), 0o755))
	for name, content := range files {
		p := filepath.Join(dir, "..2026_11_22", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		require.NoError(t, os.WriteFile(p, []byte(content), 0o440))
		first, _, _ := strings.Cut(name, "/")
		if err := os.Symlink("..data/"+first, filepath.Join(dir, first)); err != nil {
			require.ErrorIs(t, err, os.ErrExist)
		}
	}
	return dir
}

// readISO returns the files of an image, as another reader than the one that made it
// finds them.
func readISO(t *testing.T, image string, options ...string) map[string]string {
	t.Helper()
	at := t.TempDir()
	out, err := exec.Command(testenv.Program(t, "bsdtar"), append(options, "-x", "-f", image, "-C", at)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	got := map[string]string{}
	require.NoError(t, filepath.WalkDir(at, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(p)
		name, _ := filepath.Rel(at, p)
		got[name] = string(content)
		return err
	}))
	return got
}

func folderAt(t *testing.T, dir string) storage.Attachment {
	t.Helper()
	return storage.Attachment{Name: "files", Path: filepath.Join(t.TempDir(), "files", "a.iso"), Source: storage.Folder{Label: "cfgdata", Dir: dir}}
}

func TestTheFilesOfAFolderAreReadByAGuest(t *testing.T) {
	long := strings.Repeat("k", 50) + "." + strings.Repeat("e", storage.MaxFolderName-51)
	files := map[string]string{
		"meta-data": "a", "user-data": "b", "UPPER.lower.Mixed_1-x": "c", "sub/folder/file": "d", "empty": "",
		"config.yaml": strings.Repeat("x", 100_000), "config.yaml.bak": "e", "Config.yaml": "f", ".hidden": "g", long: "h",
	}
	for i := range 300 {
		files[fmt.Sprintf("a-key-with-a-long-name-that-is-cut-in-iso9660-%d", i)] = fmt.Sprint(i)
	}
	a := folderAt(t, mounted(t, files))
	require.NoError(t, Make(t.Context(), a))
	require.Equal(t, files, readISO(t, a.Path), "with the names of Rock Ridge")
	require.Equal(t, files, readISO(t, a.Path, "--options", "iso9660:!rockridge"), "with the names of Joliet")
}

func TestAnEmptyFolderIsAnEmptyFileSystem(t *testing.T) {
	a := folderAt(t, t.TempDir()) // of an object that is optional and does not exist
	require.NoError(t, Make(t.Context(), a))
	require.Empty(t, readISO(t, a.Path))
}

func TestAnImageOfFilesIsItsOwnersAlone(t *testing.T) {
	a := folderAt(t, mounted(t, map[string]string{"password": "secret"}))
	require.NoError(t, Make(t.Context(), a))
	s, err := os.Stat(a.Path)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, s.Mode())
	require.NoError(t, Make(t.Context(), a), "again, with a file that was added")
	left, err := os.ReadDir(filepath.Dir(a.Path))
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestAttackAFolderBeyondItsLimitsIsRefused(t *testing.T) {
	many, deep := map[string]string{}, strings.Repeat("d/", storage.MaxFolderDepth+1)+"file"
	for i := range storage.MaxFolderFiles + 1 {
		many[fmt.Sprint(i)] = ""
	}
	for want, files := range map[string]map[string]string{
		"the files have more than 4194304 bytes": {"a": strings.Repeat("x", storage.MaxFolderBytes), "b": "x"},
		"more than 4096 files":                   many,
		"has more than 103 characters":           {strings.Repeat("k", 104): ""},
		"more than 7 folders in each other":      {deep: ""},
	} {
		a := folderAt(t, mounted(t, files))
		err := Make(t.Context(), a)
		require.ErrorIs(t, err, vmi.ErrInvalid)
		require.ErrorContains(t, err, "make disk of volume files at "+a.Path)
		require.ErrorContains(t, err, want)
		left, err := os.ReadDir(filepath.Dir(a.Path))
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

func TestAttackALinkLeadsOutOfNoFolder(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
	for name, place := range map[string]func(path string) error{
		"a link to a file":   func(p string) error { return os.Symlink(outside, p) },
		"a link to a folder": func(p string) error { return os.Symlink(filepath.Dir(outside), p) },
		"a link upwards":     func(p string) error { return os.Symlink("../../../../etc", p) },
		"a pipe":             func(p string) error { return unix.Mkfifo(p, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, place(filepath.Join(dir, "a")))
			require.Error(t, Make(t.Context(), folderAt(t, dir)))
		})
	}
}
