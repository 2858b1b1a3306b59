package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func tarOf(t testing.TB, files map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))}))
		_, err := w.Write(files[name])
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

type files = map[string][]byte

func TestTheDiskOfAnImageIsWhatItsLayersMake(t *testing.T) {
	disk := append(make([]byte, 100<<10), "content"...)
	oci := func(layers ...string) files {
		f := files{"index.json": []byte(`{"manifests":[{"digest":"sha256:m"}]}`), "oci-layout": []byte(`{}`)}
		list := ""
		for i, l := range layers {
			name := fmt.Sprintf("sha256:l%d", i)
			list += fmt.Sprintf(`,{"digest":%q}`, name)
			f[descriptor{Digest: name}.name()] = []byte(l)
		}
		f["blobs/sha256/m"] = []byte(`{"layers":[` + list[1:] + `]}`)
		return f
	}
	layer := func(f files) string { return string(tarOf(t, f)) }
	for name, tt := range map[string]struct {
		archive files
		file    string
		want    files
		err     string
	}{
		"docker save":            {files{"manifest.json": []byte(`[{"Layers":["a/layer.tar"]}]`), "a/layer.tar": []byte(layer(files{"disk/d.img": disk, "etc/passwd": nil}))}, "", files{"d.img": disk}, ""},
		"an OCI layout":          {oci(layer(files{"./disk/d.img": disk})), "", files{"d.img": disk}, ""},
		"a disk by its path":     {oci(layer(files{"disk/other": nil, "images/d.img": disk})), "/images/d.img", files{"d.img": disk}, ""},
		"a later layer replaces": {oci(layer(files{"disk/d.img": []byte("old")}), layer(files{"disk/d.img": disk})), "", files{"d.img": disk}, ""},
		"a whiteout removes":     {oci(layer(files{"disk/a": nil}), layer(files{"disk/.wh.a": nil, "disk/b": disk})), "", files{"b": disk}, ""},
		"an opaque folder":       {oci(layer(files{"disk/a": nil}), layer(files{"disk/.wh..wh..opq": nil, "disk/b": disk})), "", files{"b": disk}, ""},
		"a folder that is gone":  {oci(layer(files{"disk/a": nil}), layer(files{".wh.disk": nil})), "", files{}, ""},
		"a path out of the root": {oci(layer(files{"disk/../../d.img": disk, "../disk/e": disk})), "", files{"e": disk}, ""},
		"two images": {files{"manifest.json": []byte(`[{"RepoTags":["b:1"],"Layers":["b"]},{"RepoTags":["example/guest:1"],"Layers":["a"]}]`),
			"a": []byte(layer(files{"disk/a": disk})), "b": []byte(layer(files{"disk/b": disk}))}, "", files{"a": disk}, ""},
		"another image":        {files{"manifest.json": []byte(`[{"RepoTags":["a:1"]},{"RepoTags":["b:1"]}]`)}, "", nil, "none of its 2 images has the reference example/guest:1"},
		"no image":             {files{"etc/passwd": nil}, "", nil, "the archive has no index.json"},
		"a layer that is gone": {files{"manifest.json": []byte(`[{"Layers":["a"]}]`)}, "", nil, "layer a: the archive does not have it"},
		"zstd":                 {oci("\x28\xb5\x2f\xfd...."), "", nil, "compressed with zstd"},
		"no tar":               {oci("layer"), "", nil, "layer blobs/sha256/l0: "},
		"many disks": {oci(layer(files{"disk/1": nil, "disk/2": nil, "disk/3": nil, "disk/4": nil, "disk/5": nil, "disk/6": nil, "disk/7": nil, "disk/8": nil,
			"disk/9": nil, "disk/10": nil, "disk/11": nil})), "", nil, "it has more than 10 disks"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "disk")
			err := unpacker{reference: "example/guest:1", file: tt.file, dir: dir}.unpack(t.Context(), bytes.NewReader(tarOf(t, tt.archive)))
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			got := files{}
			for _, e := range entries {
				got[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name()))
				require.NoError(t, err)
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestAttackADiskThatIsALinkIsRefused(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "disk/d.img", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}))
	require.NoError(t, w.Close())
	u := unpacker{dir: t.TempDir()}
	err := u.unpack(t.Context(), bytes.NewReader(tarOf(t, files{"manifest.json": []byte(`[{"Layers":["a"]}]`), "a": b.Bytes()})))
	require.ErrorContains(t, err, "/disk/d.img is no regular file")
}

func FuzzUnpack(f *testing.F) {
	f.Add(tarOf(f, files{"manifest.json": []byte(`[{"Layers":["a"]}]`), "a": tarOf(f, files{"disk/d": []byte("x")})}), tarOf(f, files{"disk/.wh.d": nil}))
	f.Fuzz(func(t *testing.T, whole, layer []byte) {
		parent := t.TempDir()
		u := unpacker{dir: filepath.Join(parent, "in", "disk")}
		_ = u.unpack(t.Context(), bytes.NewReader(whole))
		_ = u.unpack(t.Context(), bytes.NewReader(tarOf(t, files{"manifest.json": []byte(`[{"Layers":["a"]}]`), "a": layer})))
		entries, err := os.ReadDir(parent)
		require.NoError(t, err)
		require.LessOrEqual(t, len(entries), 1, "nothing is beside the folder")
	})
}

func TestOfAnIndexTheImageForTheGuestIsTaken(t *testing.T) {
	layer := func(content string) []byte { return tarOf(t, files{"disk/d.img": []byte(content)}) }
	all := files{
		"oci-layout": []byte(`{}`), "index.json": []byte(`{"manifests":[{"digest":"sha256:both"}]}`),
		"blobs/sha256/both": []byte(`{"manifests":[{"digest":"sha256:a","platform":{"architecture":"amd64"}},{"digest":"sha256:b","platform":{"architecture":"arm64"}}]}`),
		"blobs/sha256/a":    []byte(`{"layers":[{"digest":"sha256:la"}]}`), "blobs/sha256/la": layer("of amd64"),
		"blobs/sha256/b": []byte(`{"layers":[{"digest":"sha256:lb"}]}`), "blobs/sha256/lb": layer("of arm64"),
	}
	for _, arch := range []string{"amd64", "arm64"} {
		dir := filepath.Join(t.TempDir(), "disk")
		require.NoError(t, unpacker{reference: "example/guest:1", arch: arch, dir: dir}.unpack(t.Context(), bytes.NewReader(tarOf(t, all))))
		content, err := os.ReadFile(filepath.Join(dir, "d.img"))
		require.NoError(t, err)
		require.Equal(t, "of "+arch, string(content))
	}
	err := unpacker{reference: "example/guest:1", arch: "s390x", dir: t.TempDir()}.unpack(t.Context(), bytes.NewReader(tarOf(t, all)))
	require.ErrorContains(t, err, "has no image for example/guest:1 on s390x")
}
