package toolchain

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// PauseImage is the name of the image that [Tools.Pause] holds: the container
// that keeps a pod's namespaces.
const PauseImage = "localhost/podvisor-pause:v1"

// pauseImage turns the program dir/pause into the image archive dir/pause.tar.
func pauseImage(dir string) error {
	program, err := os.ReadFile(filepath.Join(dir, "pause"))
	if err != nil {
		return err
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "pause", Mode: 0o555, Size: int64(len(program))}); err != nil {
		return err
	}
	if _, err := w.Write(program); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	image, err := single(layer.Bytes(), v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"})
	if err != nil {
		return fmt.Errorf("make image %s: %w", PauseImage, err)
	}
	tag, err := name.NewTag(PauseImage)
	if err != nil {
		return err
	}
	return tarball.WriteToFile(filepath.Join(dir, "pause.tar"), tag, image)
}

// single is an image of one layer.
func single(layer []byte, config v1.Config) (v1.Image, error) {
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer)), nil })
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, l)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", runtime.GOARCH, config
	return mutate.ConfigFile(image, file)
}
