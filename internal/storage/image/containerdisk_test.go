package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// tree makes files below a new folder. A name that ends in a slash is a folder,
// a content that begins with -> is a link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		p := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		switch {
		case name[len(name)-1] == '/':
			require.NoError(t, os.MkdirAll(p, 0o755))
		case len(content) > 2 && content[:2] == "->":
			require.NoError(t, os.Symlink(content[2:], p))
		default:
			require.NoError(t, os.WriteFile(p, []byte(content), 0o644))
		}
	}
	return root
}

func TestTheImageOfAContainerDiskIsFound(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		file  string
		want  string
	}{
		"the one in /disk":          {map[string]string{"disk/a.img": "raw", "other": "x"}, "", "disk/a.img"},
		"the one that is named":     {map[string]string{"disk/a.img": "raw", "b/c.img": "raw"}, "/b/c.img", "b/c.img"},
		"one in /disk of several":   {map[string]string{"disk/a.img": "raw", "disk/b.img": "raw"}, "/disk/b.img", "disk/b.img"},
		"the copy of the named one": {map[string]string{"disk/c.img": "raw"}, "/b/c.img", "disk/c.img"},
		"a name with dots":          {map[string]string{"b/c.img": "raw"}, "/x/../b//./c.img", "b/c.img"},
	} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, tt.files)
			got, err := Inspector{}.ContainerDisk(t.Context(), root, tt.file)
			require.NoError(t, err)
			require.Equal(t, storage.Image{Path: filepath.Join(root, tt.want), Format: storage.Raw, SizeBytes: 3}, got)
		})
	}
}

func TestAWrongContainerDiskIsInvalid(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o644))
	for name, tt := range map[string]struct {
		files map[string]string
		file  string
		want  string
	}{
		"no folder":                       {map[string]string{"x": "y"}, "", "/disk does not exist"},
		"an empty folder":                 {map[string]string{"disk/": ""}, "", "is empty"},
		"two files":                       {map[string]string{"disk/a": "x", "disk/b": "y", "disk/c": "z", "disk/d": ""}, "", `holds "a", "b", "c", "d"`},
		"a folder in it":                  {map[string]string{"disk/a/": ""}, "", "not a regular file"},
		"a link out":                      {map[string]string{"disk/a": "->" + outside}, "", "symbolic link"},
		"a link within":                   {map[string]string{"disk/a": "->../b", "b": "x"}, "", "symbolic link"},
		"a link as the folder":            {map[string]string{"disk": "->/etc"}, "", "symbolic link"},
		"a link on the way":               {map[string]string{"b": "->/etc"}, "/b/passwd", "symbolic link"},
		"a name with dots":                {map[string]string{"disk/a": "x"}, "/../../../../etc/hostname", "does not exist"},
		"a missing file":                  {map[string]string{"disk/a": "x"}, "/disk/b", "/disk/b does not exist"},
		"a name with a control character": {map[string]string{"disk/a\nb": "x"}, "", "cannot be printed"},
		"an image with a base":            {map[string]string{"disk/a": "QFI\xfb\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x70" + strings.Repeat("\x00", 100)}, "", "backing file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Inspector{}.ContainerDisk(t.Context(), tree(t, tt.files), tt.file)
			require.ErrorIs(t, err, vmi.ErrInvalid)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestAPipeInAContainerDiskIsInvalidAndDoesNotBlock(t *testing.T) {
	root := tree(t, map[string]string{"disk/": ""})
	require.NoError(t, unix.Mkfifo(filepath.Join(root, "disk/pipe"), 0o644))
	_, err := Inspector{}.ContainerDisk(t.Context(), root, "")
	require.ErrorIs(t, err, vmi.ErrInvalid)
}

func TestAMountInAContainerDiskIsOutsideIt(t *testing.T) {
	testenv.Root(t)
	root := tree(t, map[string]string{"disk/": ""})
	require.NoError(t, unix.Mount("none", filepath.Join(root, "disk"), "tmpfs", 0, ""))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(filepath.Join(root, "disk"), 0)) })
	_, err := Inspector{}.ContainerDisk(t.Context(), root, "")
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.ErrorContains(t, err, "is outside the container disk")
}

func TestAContainerDiskThatIsNotMountedYetIsNotInvalid(t *testing.T) {
	_, err := Inspector{}.ContainerDisk(t.Context(), filepath.Join(t.TempDir(), "missing"), "")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NotErrorIs(t, err, vmi.ErrInvalid)
}

func FuzzContainerDisk(f *testing.F) {
	f.Add("/disk/a")
	f.Add("/../x")
	f.Add("//proc/self/root/etc/passwd")
	root := f.TempDir()
	require.NoError(f, os.Mkdir(filepath.Join(root, "disk"), 0o755))
	require.NoError(f, os.WriteFile(filepath.Join(root, "disk", "a"), []byte("raw"), 0o644))
	f.Fuzz(func(t *testing.T, file string) {
		i, err := Inspector{}.ContainerDisk(t.Context(), root, file)
		if err == nil {
			require.Equal(t, filepath.Join(root, "disk/a"), i.Path)
		}
	})
}
