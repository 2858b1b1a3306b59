package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// Limits of what is read of an archive, whoever made it.
const (
	maxDocument = 4 << 20 // of JSON, in bytes
	maxFiles    = 100_000
)

// part is the content of a file in an archive.
type part struct{ offset, size int64 }

// archive is a tar file whose files are found by their names.
type archive struct {
	file  io.ReaderAt
	arch  string // of the guest, as in GOARCH
	parts map[string]part
	links map[string]string
}

// index finds the files. The content of an archive with a wrong size is cut off.
func (a *archive) index() error {
	a.parts, a.links = map[string]part{}, map[string]string{}
	at := io.NewSectionReader(a.file, 0, 1<<62)
	r := tar.NewReader(at)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("it is no archive of an image: %w", err)
		}
		if len(a.parts)+len(a.links) == maxFiles {
			return fmt.Errorf("it has more than %d files", maxFiles)
		}
		name := path.Clean(h.Name)
		switch h.Typeflag {
		case tar.TypeReg:
			offset, err := at.Seek(0, io.SeekCurrent)
			if err != nil {
				return err
			}
			a.parts[name] = part{offset, h.Size}
		case tar.TypeSymlink: // of a layer that two images share
			a.links[name] = path.Join(path.Dir(name), h.Linkname)
		}
	}
}

// open returns a file of the archive.
func (a *archive) open(name string) (*io.SectionReader, bool) {
	name = path.Clean(name)
	if to, ok := a.links[name]; ok {
		name = to
	}
	p, ok := a.parts[name]
	return io.NewSectionReader(a.file, p.offset, p.size), ok
}

// document decodes a file of the archive.
func (a *archive) document(name string, into any) error {
	r, ok := a.open(name)
	switch {
	case !ok:
		return fmt.Errorf("the archive has no %s", name)
	case r.Size() > maxDocument:
		return fmt.Errorf("%s has more than %d bytes", name, maxDocument)
	}
	if err := json.NewDecoder(r).Decode(into); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

// layer opens a layer, which may be compressed.
func (a *archive) layer(name string) (io.Reader, error) {
	r, ok := a.open(name)
	if !ok {
		return nil, errors.New("the archive does not have it")
	}
	magic := make([]byte, 4)
	n, _ := r.ReadAt(magic, 0)
	switch {
	case bytes.HasPrefix(magic[:n], []byte{0x1f, 0x8b}):
		return gzip.NewReader(r)
	case bytes.Equal(magic[:n], []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return nil, errors.New("it is compressed with zstd: save the image with gzip or without compression")
	}
	return r, nil
}

// layers are the layers of the image with the reference, or of the only image.
func (a *archive) layers(reference string) ([]string, error) {
	if _, ok := a.open("manifest.json"); !ok {
		return a.ociLayers("index.json", reference, 0)
	}
	var images []struct{ RepoTags, Layers []string }
	if err := a.document("manifest.json", &images); err != nil {
		return nil, err
	}
	for _, i := range images {
		if len(images) == 1 || slices.Contains(i.RepoTags, reference) {
			return i.Layers, nil
		}
	}
	return nil, fmt.Errorf("none of its %d images has the reference %s", len(images), reference)
}

// descriptor is a blob of an OCI layout.
type descriptor struct {
	Digest      string
	MediaType   string
	Annotations map[string]string
	Platform    *struct{ Architecture string }
}

func (d descriptor) name() string {
	return "blobs/" + strings.ReplaceAll(d.Digest, ":", "/")
}

// ociLayers are the layers of the image that an index, or one in it, has.
func (a *archive) ociLayers(name, reference string, depth int) ([]string, error) {
	var document struct{ Manifests, Layers []descriptor }
	if err := a.document(name, &document); err != nil {
		return nil, err
	}
	if len(document.Manifests) == 0 {
		var all []string
		for _, l := range document.Layers {
			all = append(all, l.name())
		}
		return all, nil
	}
	if depth == 2 {
		return nil, errors.New("it has an index in an index in an index")
	}
	for _, d := range document.Manifests {
		tagged := d.Annotations["io.containerd.image.name"] == reference || d.Annotations["org.opencontainers.image.ref.name"] == reference
		fits := d.Platform == nil || d.Platform.Architecture == a.arch
		if len(document.Manifests) == 1 || depth == 0 && tagged || depth > 0 && fits {
			return a.ociLayers(d.name(), reference, depth+1)
		}
	}
	return nil, fmt.Errorf("%s has no image for %s on %s", name, reference, a.arch)
}
