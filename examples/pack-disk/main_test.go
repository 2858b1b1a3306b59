package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
)

// packed runs the program in a new folder.
func packed(args ...string) (status int, out, notes string) {
	var o, n bytes.Buffer
	status = run(args, &o, &n)
	return status, o.String(), n.String()
}

// made makes a disk by qemu-img in a new folder.
func made(t *testing.T, name string, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	out, err := exec.Command(testenv.Program(t, "qemu-img"), append([]string{"create", "-q"}, append(args, path, "1M")...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

func TestADiskIsPackedIntoTheArchiveThatIsNamed(t *testing.T) {
	path := made(t, "fedora.qcow2", "-f", "qcow2")
	output := filepath.Join(t.TempDir(), "image.tar")
	status, out, notes := packed("-name", "example.com/disks/fedora:40", "-output", output, path)
	require.Zero(t, status, notes)
	require.Equal(t, output+": image example.com/disks/fedora:40 with a qcow2 disk of 1048576 bytes\n", out)
	require.Empty(t, notes)
	require.FileExists(t, output)

	t.Chdir(t.TempDir())
	status, _, notes = packed("-name", "fedora:latest", path)
	require.Zero(t, status, notes)
	require.Contains(t, notes, "imagePullPolicy")
	require.FileExists(t, "fedora.tar")
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing else is left behind")
}

func TestArgumentsThatAreWrongAreNamed(t *testing.T) {
	path := made(t, "a.qcow2", "-f", "qcow2")
	for name, tt := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"no disk":           {[]string{"-name", "a:1"}, 2, "pack-disk: one disk is needed: see pack-disk --help\n"},
		"two disks":         {[]string{"-name", "a:1", path, path}, 2, "one disk is needed"},
		"no name":           {[]string{path}, 2, "-name is missing"},
		"no tag":            {[]string{"-name", "a", path}, 2, "has no tag"},
		"an unknown option": {[]string{"-x", path}, 2, "-x"},
		"an architecture":   {[]string{"-name", "a:1", "-arch", "vax", path}, 2, `architecture "vax" is none of amd64, arm64, s390x`},
		"a missing disk":    {[]string{"-name", "a:1", path + "x"}, 1, "no such file"},
		"a folder":          {[]string{"-name", "a:1", filepath.Dir(path)}, 1, "is not a regular file"},
		"a missing folder":  {[]string{"-name", "a:1", "-output", "/no/such/folder/a.tar", path}, 1, "/no/such/folder"},
		"the disk itself":   {[]string{"-name", "a:1", "-output", path, path}, 1, "the output is the disk itself"},
	} {
		t.Run(name, func(t *testing.T) {
			status, _, notes := packed(tt.args...)
			require.Equal(t, tt.status, status)
			require.Contains(t, notes, tt.says)
		})
	}
}

func TestTheHelpIsOnStandardOutput(t *testing.T) {
	status, out, notes := packed("--help")
	require.Zero(t, status)
	require.Contains(t, out, usage)
	require.Empty(t, notes)
}

func TestNamesOfImagesAreCompleted(t *testing.T) {
	for name, want := range map[string]string{
		"fedora:40":                      "docker.io/library/fedora:40",
		"podvisor/demo:1":                "docker.io/podvisor/demo:1",
		"localhost/podvisor/demo:dev":    "localhost/podvisor/demo:dev",
		"registry:5000/a/b_c:v1.2-rc":    "registry:5000/a/b_c:v1.2-rc",
		"example.com/disks/fed-ora:40_x": "example.com/disks/fed-ora:40_x",
	} {
		got, err := parseReference(name)
		require.NoError(t, err, name)
		require.Equal(t, want, got.String())
	}
	for name, says := range map[string]string{
		"a@sha256:0123":      "has a digest",
		"A/b:1":              `"A/b" is no name`,
		"a:b:c":              "is no tag",
		"a:":                 "is no tag",
		"example.com/:1":     "is no name",
		"exa mple.com/a:1":   "is no registry",
		"localhost:5000/a":   "has no tag",
		"a/../b:1":           "is no name",
		"example.com:x/a:1":  "is no registry",
		"example.com//a/b:1": "is no name",
	} {
		_, err := parseReference(name)
		require.ErrorContains(t, err, says, name)
	}
}
