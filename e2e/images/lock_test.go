package images

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
)

func TestPackagesAreReadFromWhatAptWouldDownload(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("0a", 32)
	got, err := parseURIs("NOTE\n'http://a/libc6_2.41-12%2bdeb13u5_amd64.deb' libc6_2.41-12+deb13u5_amd64.deb 2850108 SHA256:" + sum + "\n" +
		"'http://a/busybox.deb' busybox-static_1%3a1.37.0-6+b9_amd64.deb 955316 SHA256:" + sum + "\n")
	require.NoError(t, err)
	require.Equal(t, []Package{{"busybox-static", "1:1.37.0-6+b9", sum}, {"libc6", "2.41-12+deb13u5", sum}}, got)
	_, err = parseURIs("'http://a/libc6.deb' libc6_2.41_amd64.deb 2850108 MD5Sum:0a\n")
	require.ErrorContains(t, err, "names no file with its digest")
}

func TestALockIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	d := Debian{Suite: "trixie", Packages: []string{"a"}, arch: amd64}
	var l lock
	l.put("one", d, []Package{{"a", "1", "x"}, {"b", "1", "y"}})
	l.put("two", d, []Package{{"b", "2", "z"}})
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "images"), 0o755))
	require.NoError(t, l.write(root))
	back, err := readLock(root)
	require.NoError(t, err)
	require.Equal(t, l, back)
	packages, err := back.of("one", d)
	require.NoError(t, err)
	require.Equal(t, []Package{{"a", "1", "x"}, {"b", "2", "z"}}, packages, "a suite has one version of each package")

	_, err = back.of("one", Debian{Suite: "trixie", Packages: []string{"a", "c"}, arch: amd64})
	require.ErrorContains(t, err, "run make images-lock", "the recipe asks for something else than it did")
	_, err = back.of("three", d)
	require.ErrorContains(t, err, "run make images-lock")
}

func TestWhatDiffersFromALockIsNamed(t *testing.T) {
	t.Parallel()
	d := Debian{Suite: "trixie", arch: amd64}
	var was, is lock
	was.put("one", d, []Package{{"a", "1", "x"}, {"b", "1", "y"}, {"c", "1", "z"}, {"e", "1", "w"}})
	is.put("one", d, []Package{{"a", "2", "x2"}, {"b", "1", "y"}, {"d", "1", "z"}, {"e", "1", "v"}})
	require.Equal(t, []string{"a 2, before 1", "c is gone, before 1", "d 1, before absent", "e 1 has another digest: v, before w"}, was.changes(is))
	require.Empty(t, was.changes(was))
}

func TestTheFolderOfTheRepositoryIsAbsolute(t *testing.T) {
	at, err := repository("../..")
	require.NoError(t, err)
	require.True(t, filepath.IsAbs(at), at)
	above, err := repository("")
	require.NoError(t, err)
	require.Equal(t, above, at)
}

// The lock names a version that no archive ever had.
func TestASupersededVersionIsReplacedByTheNewestAndNamed(t *testing.T) {
	testenv.Program(t, "apt-get")
	testenv.Program(t, "dpkg-deb")
	at, err := repository("")
	require.NoError(t, err)
	root := filepath.Join(t.TempDir(), "repository")
	require.NoError(t, os.MkdirAll(root, 0o755))
	require.NoError(t, os.CopyFS(filepath.Join(root, "images"), os.DirFS(filepath.Join(at, "images"))))
	require.NoError(t, os.WriteFile(filepath.Join(root, "go.mod"), []byte("module github.com/podvisor/podvisor\n"), 0o644))
	l, err := readLock(root)
	require.NoError(t, err)
	p := l.Suites["trixie"]["busybox-static"]
	p.Version = "1:1.0-1"
	l.Suites["trixie"]["busybox-static"] = p
	require.NoError(t, l.write(root))

	var said bytes.Buffer
	conf := Config{Root: root, Cache: t.TempDir(), Out: &said}
	c, unlock, err := conf.open(t.Context())
	require.NoError(t, err)
	defer unlock()
	list, err := ReadList(root, "tools", amd64)
	require.NoError(t, err)
	_, err = c.unpacked(t.Context(), list)
	require.ErrorIs(t, err, errSuperseded)
	require.ErrorContains(t, err, "busybox-static=1:1.0-1")
	require.NoError(t, c.supersede(t.Context(), "trixie", err))
	files, err := c.unpacked(t.Context(), list)
	require.NoError(t, err, said.String())
	require.NotEmpty(t, files["/usr/bin/busybox"].Content)
	require.Regexp(t, `busybox-static 1:\S+, before 1:1\.0-1\n`, said.String())
	again, err := readLock(root)
	require.NoError(t, err)
	require.Equal(t, "1:1.0-1", again.Suites["trixie"]["busybox-static"].Version, "the lock stays as it is")
}

func TestTheImagesOfTheLauncherAreSmallAndHaveNoShell(t *testing.T) {
	testenv.Program(t, "apt-get")
	for name, most := range map[string]int64{"virt-launcher": 120e6, "virt-launcher-full": 250e6} {
		for _, arch := range Architectures(name) {
			b := builtFor(t, name, arch)
			require.LessOrEqual(t, b.SizeBytes, most, "%s for %s", name, arch)
			all := files(t, b)
			for _, shell := range []string{"/bin/sh", "/usr/bin/sh", "/usr/bin/dash", "/usr/bin/bash"} {
				require.NotContains(t, all, shell, "%s for %s", name, arch)
			}
			require.Contains(t, all, "/usr/bin/stat", "%s for %s", name, arch)
		}
	}
}

func TestAnImageHoldsUnmodifiedFilesOfThePackagesOfItsTable(t *testing.T) {
	testenv.Program(t, "apt-get")
	b := built(t, "virt-launcher")
	lines, err := os.ReadFile(b.Packages)
	require.NoError(t, err)
	c, unlock, err := (&Config{Out: t.Output()}).open(t.Context())
	require.NoError(t, err)
	defer unlock()
	from := map[string][]string{}
	for line := range strings.Lines(string(lines)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		require.Len(t, f, 3)
		files, err := c.unpackOne(t.Context(), Package{f[0], f[1], f[2]})
		require.NoError(t, err)
		for name, n := range files {
			if !n.Folder && n.Link == "" {
				from[string(n.Content)] = append(from[string(n.Content)], name)
			}
		}
	}
	own := 0
	for name, n := range files(t, b) {
		switch {
		case n.Folder || n.Link != "":
		case name == "/usr/bin/virt-launcher", name == "/etc/passwd", name == "/etc/group", strings.HasPrefix(name, "/usr/share/podvisor/"):
			own++
		default:
			require.NotEmpty(t, from[string(n.Content)], "%s is of no package", name)
		}
	}
	require.Equal(t, 4, own)
	require.Contains(t, string(lines), "qemu-system-x86\t1:10.")
	require.NotContains(t, string(lines), "polkitd", "what a package depends on and the image has no file of")
}
