package image

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/storage/cloudinit"
)

// Windows reads the names of Joliet only.
func TestFilesInFoldersHaveNamesOfJoliet(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"openstack/latest/meta_data.json": `{"uuid": "a"}`, "openstack/latest/user_data": "#!/bin/sh", "openstack/content/0000": "x",
		"openstack/content/deep/er/Ünï code": "y", "unattend.xml": "<unattend/>",
	}
	for n := range 60 { // more than a block of records
		want[fmt.Sprintf("many/folder with a long name %02d/file", n)] = fmt.Sprint(n)
	}
	var files []cloudinit.File
	for name, content := range want {
		files = append(files, cloudinit.File{Name: name, Content: []byte(content)})
	}
	path := filepath.Join(t.TempDir(), "seed.iso")
	require.NoError(t, seeded(path, storage.Seed{Label: "config-2", Files: files}))
	require.Equal(t, want, readISO(t, path, "--options", "iso9660:!rockridge"))
}

// FuzzJoliet mends trees that are damaged: there is an error or an end.
func FuzzJoliet(f *testing.F) {
	path := filepath.Join(f.TempDir(), "seed.iso")
	require.NoError(f, seeded(path, storage.Seed{Label: "l", Files: []cloudinit.File{{Name: "a/b/c", Content: []byte("x")}}}))
	whole, err := os.ReadFile(path)
	require.NoError(f, err)
	f.Add(uint(16*isoBlock), byte(2))
	f.Add(uint(17*isoBlock+pathTableSizeAt), byte(255))
	f.Fuzz(func(_ *testing.T, at uint, value byte) {
		damaged := append([]byte{}, whole...)
		damaged[at%uint(len(damaged))] = value
		_ = joliet(memory(damaged))
	})
}

type memory []byte

func (m memory) ReadAt(p []byte, at int64) (int, error) {
	if at < 0 || at+int64(len(p)) > int64(len(m)) {
		return 0, os.ErrInvalid
	}
	return copy(p, m[at:]), nil
}

func (m memory) WriteAt(p []byte, at int64) (int, error) {
	if at < 0 || at+int64(len(p)) > int64(len(m)) {
		return 0, os.ErrInvalid
	}
	return copy(m[at:], p), nil
}
