package cluster

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// tarOf is an archive of the files.
func tarOf(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, content := range files {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644}))
		_, err := w.Write([]byte(content))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func TestTheImagesOfAnArchive(t *testing.T) {
	t.Parallel()
	const oneIndex = `{"manifests":[{"digest":"sha256:i","annotations":{"io.containerd.image.name":"localhost/a:1"}}]}`
	tests := []struct {
		name  string
		files map[string]string
		want  []string
		err   string
	}{
		{"docker save", map[string]string{"manifest.json": `[{"RepoTags":["localhost/b:1","localhost/a:1"]},{"RepoTags":null}]`}, []string{"localhost/a:1", "localhost/b:1"}, ""},
		{"OCI", map[string]string{"./index.json": `{"manifests":[{"annotations":{"io.containerd.image.name":"localhost/a:1"}},{}]}`}, []string{"localhost/a:1"}, ""},
		{"both name it once", map[string]string{
			"manifest.json": `[{"RepoTags":["localhost/a:1"]}]`,
			"index.json":    `{"manifests":[{"annotations":{"io.containerd.image.name":"localhost/a:1"}}]}`,
		}, []string{"localhost/a:1"}, ""},
		{"no name", map[string]string{"index.json": `{}`}, nil, ""},
		{"files that are no images", map[string]string{"disk.qcow2": "QFI"}, nil, "not an image archive: it has no manifest.json and no index.json"},
		{"a manifest that is none", map[string]string{"manifest.json": `{"RepoTags":1}`}, nil, "read manifest.json: "},
		{"the architecture of the nodes", map[string]string{
			"manifest.json": `[{"Config":"c.json","RepoTags":["localhost/a:1"]}]`, "c.json": `{"architecture":"amd64"}`,
		}, []string{"localhost/a:1"}, ""},
		{"another architecture", map[string]string{
			"manifest.json": `[{"Config":"c.json","RepoTags":["localhost/a:1"]}]`, "c.json": `{"architecture":"arm64"}`,
		}, nil, "image localhost/a:1 is for arm64, and the nodes are amd64"},
		{"another architecture in an OCI layout", map[string]string{
			"index.json": oneIndex, "blobs/sha256/i": `{"config":{"digest":"sha256:c"}}`, "blobs/sha256/c": `{"architecture":"arm64"}`,
		}, nil, "image localhost/a:1 is for arm64, and the nodes are amd64"},
		{"an index of several architectures with that of the nodes", map[string]string{
			"index.json": oneIndex, "blobs/sha256/i": `{"manifests":[{"digest":"sha256:x","platform":{"architecture":"arm64"}},{"digest":"sha256:y","platform":{"architecture":"amd64"}}]}`,
		}, []string{"localhost/a:1"}, ""},
		{"an index of other architectures, with an attestation", map[string]string{
			"index.json": oneIndex, "blobs/sha256/i": `{"manifests":[{"platform":{"architecture":"s390x"}},{"platform":{"architecture":"arm64"}},{"platform":{"architecture":"unknown"}}]}`,
		}, nil, "image localhost/a:1 is for arm64, s390x, and the nodes are amd64"},
		{"an index that names itself", map[string]string{
			"index.json": oneIndex, "blobs/sha256/i": `{"manifests":[{"digest":"sha256:i"},{"digest":"sha256:i"}]}`,
		}, []string{"localhost/a:1"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := namesIn(bytes.NewReader(tarOf(t, tt.files)), "amd64")
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func FuzzImagesOfAnArchive(f *testing.F) {
	f.Add([]byte("manifest.json"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if names, err := namesIn(bytes.NewReader(b), "amd64"); err != nil {
			require.Empty(t, names)
		}
	})
}

func TestLoadGoesOnAfterABadArchiveAndNamesAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	torn := write("torn.tar", []byte("no archive"))
	other := write("other.tar", tarOf(t, map[string]string{"manifest.json": `[{"Config":"c","RepoTags":["localhost/a:1"]}]`, "c": `{"architecture":"none"}`}))
	good := write("good.tar", tarOf(t, map[string]string{"manifest.json": `[{"RepoTags":["localhost/good:1"]}]`}))
	var out bytes.Buffer
	c := &Cluster{config: Config{Out: &out}} // it has no nodes that lack an image
	err := c.Load(t.Context(), torn, other, good, filepath.Join(dir, "missing.tar"))
	require.ErrorContains(t, err, "load image "+torn+": not an image archive")
	require.ErrorContains(t, err, "load image "+other+": image localhost/a:1 is for none")
	require.ErrorContains(t, err, "missing.tar: no such file")
	require.Contains(t, out.String(), "image localhost/good:1 is on the nodes already")
}
