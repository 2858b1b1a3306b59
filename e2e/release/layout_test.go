package release

import (
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/internal/version"
)

func TestAnImageIsAnIndexOfThoseOfBothArchitectures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var built []images.Built
	for _, arch := range Architectures() {
		for _, image := range []string{"one", "two"} {
			b := images.Built{Name: image, Architecture: arch, Tar: filepath.Join(dir, image+arch)}
			img, err := random.Image(1024, 2)
			require.NoError(t, err)
			conf, err := img.ConfigFile()
			require.NoError(t, err)
			conf = conf.DeepCopy()
			conf.OS, conf.Architecture = "linux", arch
			img, err = mutate.ConfigFile(img, conf)
			require.NoError(t, err)
			tag, err := name.NewTag("localhost/" + image + ":dev")
			require.NoError(t, err)
			require.NoError(t, tarball.WriteToFile(b.Tar, tag, img))
			built = append(built, b)
		}
	}
	c := Config{Version: "v1.2.3", Registry: testRegistry}
	released, digests, err := c.writeLayout(filepath.Join(dir, layoutFolder), version.Info{Date: "2026-01-02T03:04:05Z"}, built)
	require.NoError(t, err)
	require.Len(t, released, 4)
	all, m, err := openLayout(dir)
	require.NoError(t, err)
	require.Len(t, m.Manifests, 2)
	for _, d := range m.Manifests {
		require.Equal(t, digests[d.Annotations[nameAnnotation]], d.Digest.String())
		both, err := all.ImageIndex(d.Digest)
		require.NoError(t, err)
		require.NoError(t, validate.Index(both))
		for arch, img := range platforms(t, both) {
			digest, err := img.Digest()
			require.NoError(t, err)
			found := false
			for _, r := range released {
				if r.built.Name == d.Annotations[nameAnnotation] && r.built.Architecture == arch {
					require.Equal(t, r.digest, digest)
					require.Greater(t, r.sizeBytes, int64(2048))
					found = true
				}
			}
			require.True(t, found)
		}
	}
}
