package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/podvisor/podvisor/vmi"
)

// The modes of the disk and of its folder. QEMU only reads them: what a guest writes
// is in an overlay.
const (
	fileMode   = 0o440
	folderMode = 0o555
)

// image is a container image of one layer with one disk.
type image struct {
	reference reference
	arch      string
	// file is the name of the disk in /disk.
	file string
	// size and content are those of the disk. It is read twice, since the digest of
	// the layer precedes the layer.
	size    int64
	content io.ReaderAt
}

// blob is a part of the archive that is found by its digest.
type blob struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`

	Annotations map[string]string `json:"annotations,omitempty"`
	Platform    *platform         `json:"platform,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// path is the blob's file in the archive.
func (b blob) path() string { return "blobs/sha256/" + b.Digest[len("sha256:"):] }

// write writes the archive. https://github.com/opencontainers/image-spec describes
// its files, but for manifest.json, which is that of docker save.
func (i image) write(w io.Writer) error {
	layer, err := i.layer(io.Discard)
	if err != nil {
		return err
	}
	p := platform{i.arch, "linux"}
	config := encode(map[string]any{
		"architecture": p.Architecture, "os": p.OS, "config": struct{}{},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layer.Digest}},
	})
	described := config.blob("application/vnd.oci.image.config.v1+json")
	manifest := encode(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": described, "layers": []blob{layer},
	})
	top := manifest.blob("application/vnd.oci.image.manifest.v1+json")
	top.Platform = &p
	top.Annotations = map[string]string{"io.containerd.image.name": i.reference.String(), "org.opencontainers.image.ref.name": i.reference.tag}

	a := archive{tar.NewWriter(w)}
	for _, f := range []struct {
		name    string
		content text
	}{
		{"oci-layout", encode(map[string]any{"imageLayoutVersion": "1.0.0"})},
		{"index.json", encode(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []blob{top}})},
		{"manifest.json", encode([]map[string]any{{"Config": described.path(), "RepoTags": []string{i.reference.String()}, "Layers": []string{layer.path()}}})},
		{described.path(), config},
		{top.path(), manifest},
	} {
		if err := a.file(f.name, f.content); err != nil {
			return err
		}
	}
	if err := a.WriteHeader(&tar.Header{Name: layer.path(), Mode: 0o644, Size: layer.Size}); err != nil {
		return err
	}
	again, err := i.layer(a)
	if err != nil {
		return err
	}
	if again.Digest != layer.Digest {
		return errors.New("the file changes while it is packed: is a guest using it?")
	}
	return a.Close()
}

// layer writes the layer and describes it.
func (i image) layer(w io.Writer) (blob, error) {
	sum := sha256.New()
	count := counter{w: io.MultiWriter(sum, w)}
	t := tar.NewWriter(&count)
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeDir, Name: "disk/", Mode: folderMode},
		{Typeflag: tar.TypeReg, Name: "disk/" + i.file, Mode: fileMode, Size: i.size},
	} {
		h.Uid, h.Gid = vmi.RuntimeUID, vmi.RuntimeUID
		if err := t.WriteHeader(&h); err != nil {
			return blob{}, err
		}
	}
	if _, err := io.Copy(t, io.NewSectionReader(i.content, 0, i.size)); err != nil {
		return blob{}, err
	}
	if err := t.Close(); err != nil {
		return blob{}, fmt.Errorf("the file became shorter while it was packed: %w", err)
	}
	return blob{MediaType: "application/vnd.oci.image.layer.v1.tar", Digest: "sha256:" + hex.EncodeToString(sum.Sum(nil)), Size: count.n}, nil
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// text is JSON, the same for the same value.
type text []byte

func encode(v any) text {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // maps and slices of strings and numbers
	}
	return b.Bytes()
}

func (d text) blob(mediaType string) blob {
	sum := sha256.Sum256(d)
	return blob{MediaType: mediaType, Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(d))}
}

// archive is a tar with files of the same owner and time.
type archive struct{ *tar.Writer }

func (a archive) file(name string, content []byte) error {
	if err := a.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := a.Write(content)
	return err
}
