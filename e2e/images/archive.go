package images

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layerFile is a layer that is a tar on disk and stays uncompressed: that imports
// faster, and nothing of it travels over a network.
type layerFile struct {
	path string
	hash v1.Hash
	size int64
}

func openLayer(path string) (*layerFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err != nil {
		return nil, err
	}
	return &layerFile{path: path, size: size, hash: v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum.Sum(nil))}}, nil
}

func (l *layerFile) Digest() (v1.Hash, error)             { return l.hash, nil }
func (l *layerFile) DiffID() (v1.Hash, error)             { return l.hash, nil }
func (l *layerFile) Compressed() (io.ReadCloser, error)   { return os.Open(l.path) }
func (l *layerFile) Uncompressed() (io.ReadCloser, error) { return os.Open(l.path) }
func (l *layerFile) Size() (int64, error)                 { return l.size, nil }
func (l *layerFile) MediaType() (types.MediaType, error)  { return types.DockerUncompressedLayer, nil }

// assemble makes an image of layers.
func assemble(l List, layers []string) (v1.Image, error) {
	img := empty.Image
	for _, path := range layers {
		layer, err := openLayer(path)
		if err != nil {
			return nil, err
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			return nil, err
		}
	}
	conf, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	conf = conf.DeepCopy()
	conf.OS, conf.Architecture = "linux", l.arch
	conf.Config = v1.Config{Entrypoint: l.Entrypoint, User: l.User, Labels: l.Labels}
	// A container disk is never run.
	if len(l.Entrypoint) > 0 {
		conf.Config.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
		conf.Config.WorkingDir = "/"
	}
	return mutate.ConfigFile(img, conf)
}

// writeArchive writes an image as docker-archive.
func writeArchive(w io.Writer, reference string, img v1.Image) error {
	tag, err := name.NewTag(reference)
	if err != nil {
		return err
	}
	return tarball.Write(tag, img, w)
}
