package cluster

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
)

// archive is an image archive: a file with the names it gives its images.
type archive struct {
	path   string
	digest string
	names  []string
}

// in says whether every name was last loaded from the same content.
func (a archive) in(known map[string]string) bool {
	return len(a.names) > 0 && !slices.ContainsFunc(a.names, func(n string) bool { return known[n] != a.digest })
}

// listed says whether every name is a line of the list.
func (a archive) listed(list string) bool {
	lines := strings.Split(list, "\n")
	return !slices.ContainsFunc(a.names, func(n string) bool { return !slices.Contains(lines, n) })
}

// readArchive reads what is in an image archive for the nodes of this host.
func readArchive(file string) (archive, error) {
	f, err := os.Open(file)
	if err != nil {
		return archive{}, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return archive{}, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return archive{}, err
	}
	names, err := namesIn(f, runtime.GOARCH)
	return archive{path: file, digest: hex.EncodeToString(h.Sum(nil)), names: names}, err
}

// namesIn reads which names an archive gives its images. An image that is not for
// the architecture is an error.
func namesIn(r io.Reader, architecture string) ([]string, error) {
	d, err := readDocuments(r)
	if err != nil {
		return nil, fmt.Errorf("not an image archive: %w", err)
	}
	images, err := d.images()
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, i := range images {
		if len(i.architectures) > 0 && !slices.Contains(i.architectures, architecture) {
			return nil, fmt.Errorf("image %s is for %s, and the nodes are %s", cmp.Or(i.name, "without a name"), strings.Join(i.architectures, ", "), architecture)
		}
		if i.name != "" {
			names[i.name] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// loadable is an image of an archive. Without a name it is loaded every time.
type loadable struct {
	name string
	// architectures are those that it is for. None: it does not say.
	architectures []string
}

// documents are the JSON documents of an archive, by path.
type documents map[string][]byte

// documentLimit is more than a manifest or the configuration of an image has.
const documentLimit = 1 << 20

func readDocuments(r io.Reader) (documents, error) {
	d := documents{}
	for t := tar.NewReader(r); ; {
		header, err := t.Next()
		if errors.Is(err, io.EOF) {
			return d, nil
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag != tar.TypeReg || header.Size > documentLimit {
			continue
		}
		data, err := io.ReadAll(t)
		if err != nil {
			return nil, err
		}
		if start := bytes.TrimSpace(data); len(start) > 0 && (start[0] == '{' || start[0] == '[') {
			d[path.Clean(header.Name)] = data
		}
	}
}

// images are the images that the archive's index and its manifest name.
func (d documents) images() ([]loadable, error) {
	if d["manifest.json"] == nil && d["index.json"] == nil {
		return nil, errors.New("not an image archive: it has no manifest.json and no index.json")
	}
	ofDocker, err := d.ofDocker()
	if err != nil {
		return nil, err
	}
	ofOCI, err := d.ofOCI()
	return append(ofDocker, ofOCI...), err
}

// ofDocker are the images of an archive of docker save.
func (d documents) ofDocker() ([]loadable, error) {
	var manifest []struct {
		Config   string
		RepoTags []string
	}
	if err := d.read("manifest.json", &manifest); err != nil {
		return nil, err
	}
	var out []loadable
	for _, m := range manifest {
		architectures, err := d.ofConfig(path.Clean(m.Config))
		if err != nil {
			return nil, err
		}
		if len(m.RepoTags) == 0 {
			m.RepoTags = []string{""}
		}
		for _, tag := range m.RepoTags {
			out = append(out, loadable{tag, architectures})
		}
	}
	return out, nil
}

// descriptor is an entry of an OCI index, or the configuration of a manifest.
type descriptor struct {
	Digest      string
	Annotations map[string]string
	Platform    *struct{ Architecture string }
}

// blob is where what it describes is in the archive.
func (d descriptor) blob() string { return path.Join("blobs", strings.ReplaceAll(d.Digest, ":", "/")) }

// ofOCI are the images of an OCI layout.
func (d documents) ofOCI() ([]loadable, error) {
	var index struct{ Manifests []descriptor }
	if err := d.read("index.json", &index); err != nil {
		return nil, err
	}
	var out []loadable
	for _, m := range index.Manifests {
		architectures, err := d.ofManifest(m, 0)
		if err != nil {
			return nil, err
		}
		out = append(out, loadable{m.Annotations["io.containerd.image.name"], slices.Sorted(maps.Keys(architectures))})
	}
	return out, nil
}

// ofManifest are the architectures of a manifest, or of those in an index, which
// holds no further index.
func (d documents) ofManifest(m descriptor, depth int) (map[string]bool, error) {
	if m.Platform != nil && m.Platform.Architecture != "" {
		return map[string]bool{m.Platform.Architecture: true}, nil
	}
	var manifest struct {
		Config    descriptor
		Manifests []descriptor
	}
	if err := d.read(m.blob(), &manifest); err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, inner := range manifest.Manifests {
		if depth > 0 {
			break
		}
		architectures, err := d.ofManifest(inner, depth+1)
		if err != nil {
			return nil, err
		}
		maps.Copy(out, architectures)
	}
	delete(out, "unknown") // that of attestations
	architectures, err := d.ofConfig(manifest.Config.blob())
	for _, a := range architectures {
		out[a] = true
	}
	return out, err
}

// ofConfig is the architecture of the configuration of an image, if it is there
// and says it.
func (d documents) ofConfig(name string) ([]string, error) {
	var config struct{ Architecture string }
	if err := d.read(name, &config); err != nil || config.Architecture == "" {
		return nil, err
	}
	return []string{config.Architecture}, nil
}

// read reads a document. One that is not there leaves out as it is.
func (d documents) read(name string, out any) error {
	data, ok := d[name]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}
