package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/internal/version"
)

// layoutFolder has the images, as one OCI layout: an index for each, with the image of each
// architecture. Layers that two images have are there once.
const layoutFolder = "images"

// Annotations of the images in the index of the layout.
const (
	nameAnnotation    = "org.opencontainers.image.ref.name"
	versionAnnotation = "org.opencontainers.image.version"
	// containerdAnnotation is the name by which containerd imports an image.
	containerdAnnotation = "io.containerd.image.name"
)

// image is an image of the release, for one architecture.
type image struct {
	built  images.Built
	digest v1.Hash
	// sizeBytes is what a node gets: the layers, compressed, and what describes them.
	sizeBytes int64
	// modules of Go are in the programs of the image, each once.
	modules []module
}

// writeLayout writes the images, and reads what Go put into their programs. The digests are
// those of the indexes, by the names of the images.
func (c Config) writeLayout(dir string, of version.Info, built []images.Built) (out []image, digests map[string]string, err error) {
	at, err := time.Parse(time.RFC3339, of.Date)
	if err != nil {
		return nil, nil, fmt.Errorf("time of the commit: %w", err)
	}
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		return nil, nil, err
	}
	packed, indexes := map[v1.Hash]v1.Layer{}, map[string]v1.ImageIndex{}
	for _, b := range built {
		img, modules, err := c.repack(b, at, packed)
		if err != nil {
			return nil, nil, fmt.Errorf("pack image %s: %w", b.Name, err)
		}
		digest, err := img.Digest()
		if err != nil {
			return nil, nil, err
		}
		size, err := sizeOf(img)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, image{built: b, digest: digest, sizeBytes: size, modules: modules})
		if indexes[b.Name] == nil {
			indexes[b.Name] = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
		}
		platform := v1.Platform{OS: "linux", Architecture: b.Architecture}
		indexes[b.Name] = mutate.AppendManifests(indexes[b.Name], mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	digests = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(indexes)) {
		named := map[string]string{nameAnnotation: name, versionAnnotation: c.Version}
		if c.Registry != "" {
			named[containerdAnnotation] = c.Registry + "/" + name + ":" + c.Version
		}
		if err := l.AppendIndex(indexes[name], layout.WithAnnotations(named)); err != nil {
			return nil, nil, fmt.Errorf("write image %s: %w", name, err)
		}
		digest, err := indexes[name].Digest()
		if err != nil {
			return nil, nil, err
		}
		digests[name] = digest.String()
	}
	return out, digests, nil
}

// sizeOf is what a node gets of an image.
func sizeOf(img v1.Image) (int64, error) {
	m, err := img.Manifest()
	if err != nil {
		return 0, err
	}
	own, err := img.Size()
	if err != nil {
		return 0, err
	}
	all := own + m.Config.Size
	for _, l := range m.Layers {
		all += l.Size
	}
	return all, nil
}

// repack makes the image of a registry of one that was built for an import: with media
// types of OCI and compressed layers. Layers that were packed before are taken as they are.
func (c Config) repack(b images.Built, at time.Time, packed map[v1.Hash]v1.Layer) (v1.Image, []module, error) {
	from, err := tarball.ImageFromPath(b.Tar, nil)
	if err != nil {
		return nil, nil, err
	}
	layers, err := from.Layers()
	if err != nil {
		return nil, nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	var modules []module
	for _, l := range layers {
		id, err := l.DiffID()
		if err != nil {
			return nil, nil, err
		}
		if packed[id] == nil {
			level := gzip.DefaultCompression // the best takes three times as long, for two in a thousand
			if c.Fast {
				level = gzip.BestSpeed
			}
			packed[id], err = tarball.LayerFromOpener(l.Uncompressed, tarball.WithCompressionLevel(level),
				tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
			if err != nil {
				return nil, nil, err
			}
		}
		if img, err = mutate.Append(img, mutate.Addendum{Layer: packed[id], MediaType: types.OCILayer}); err != nil {
			return nil, nil, err
		}
		found, err := modulesOf(l)
		if err != nil {
			return nil, nil, err
		}
		modules = append(modules, found...)
	}
	slices.SortFunc(modules, compareModules)
	was, err := from.ConfigFile()
	if err != nil {
		return nil, nil, err
	}
	is, err := img.ConfigFile()
	if err != nil {
		return nil, nil, err
	}
	is = is.DeepCopy()
	is.OS, is.Architecture, is.Config, is.Created = was.OS, was.Architecture, was.Config, v1.Time{Time: at}
	img, err = mutate.ConfigFile(img, is)
	return img, slices.Compact(modules), err
}

// modulesOf are the modules of Go in the programs of a layer.
func modulesOf(l v1.Layer) (all []module, err error) {
	r, err := l.Uncompressed()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg || h.Mode&0o111 == 0 {
			continue
		}
		content, err := io.ReadAll(in)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", h.Name, err)
		}
		if !bytes.HasPrefix(content, []byte("\x7fELF")) {
			continue
		}
		if info, err := buildinfo.Read(bytes.NewReader(content)); err == nil { // else it is no program of Go
			all = append(all, modules(info)...)
		}
	}
}

// openLayout opens the images of a release: an index of their indexes.
func openLayout(dir string) (v1.ImageIndex, *v1.IndexManifest, error) {
	l, err := layout.FromPath(filepath.Join(dir, layoutFolder))
	if err != nil {
		return nil, nil, fmt.Errorf("open the images of release %s: %w", dir, err)
	}
	all, err := l.ImageIndex()
	if err != nil {
		return nil, nil, err
	}
	m, err := all.IndexManifest()
	return all, m, err
}
