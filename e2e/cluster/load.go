package cluster

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Load brings image archives (of docker save or of OCI) to every node, to all
// nodes at once. What a node has already, with the same content, is left out.
func (c *Cluster) Load(ctx context.Context, tars ...string) error {
	s := newSteps(c.config.Out)
	for _, path := range tars {
		a, err := readArchive(path)
		if err != nil {
			return fmt.Errorf("load image %s: %w", path, err)
		}
		loaded, err := c.loadOne(ctx, a)
		if err != nil {
			return fmt.Errorf("load image %s: %w", path, err)
		}
		what := strings.Join(a.names, ", ")
		if what == "" {
			what = path
		}
		if len(loaded) == 0 {
			s.print("image %s is on the nodes already", what)
			continue
		}
		s.print("image %s loaded to %s", what, strings.Join(loaded, ", "))
	}
	return nil
}

// loadOne loads an archive to the nodes that lack it and returns their names.
func (c *Cluster) loadOne(ctx context.Context, a archive) ([]string, error) {
	var all sync.WaitGroup
	names := c.NodeNames()
	did, errs := make([]bool, len(names)), make([]error, len(names))
	for i, name := range names {
		all.Go(func() { did[i], errs[i] = c.Node(name).load(ctx, a) })
	}
	all.Wait()
	var loaded []string
	for i, name := range names {
		if did[i] {
			loaded = append(loaded, name)
		}
	}
	return loaded, errors.Join(errs...)
}

// load loads an archive to one node, unless the node has it.
func (n Node) load(ctx context.Context, a archive) (bool, error) {
	memo := filepath.Join(n.Dir(), "images.json")
	known, err := readMemo(memo)
	if err != nil {
		return false, err
	}
	if a.in(known) {
		out, err := n.Command(ctx, "ctr", "-n", "k8s.io", "images", "list", "-q").Output()
		if err == nil && a.listed(string(out)) {
			return false, nil
		}
	}
	f, err := os.Open(a.path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	cmd := n.Command(ctx, "ctr", "-n", "k8s.io", "images", "import", "-")
	cmd.Stdin = f
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return false, fmt.Errorf("node %s: %w: %s", n.Name, err, strings.TrimSpace(string(out)))
	}
	for _, name := range a.names {
		known[name] = a.digest
	}
	return true, writeJSON(memo, known)
}

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

func readArchive(path string) (archive, error) {
	f, err := os.Open(path)
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
	names, err := imageNames(f)
	return archive{path: path, digest: hex.EncodeToString(h.Sum(nil)), names: names}, err
}

// imageNames reads which names an archive gives its images. An archive without
// names is allowed; it is loaded every time.
func imageNames(r io.Reader) ([]string, error) {
	names := map[string]bool{}
	for t := tar.NewReader(r); ; {
		header, err := t.Next()
		if err == io.EOF {
			return slices.Sorted(maps.Keys(names)), nil
		}
		if err != nil {
			return nil, fmt.Errorf("not an image archive: %w", err)
		}
		switch filepath.Clean(header.Name) {
		case "manifest.json":
			var manifest []struct{ RepoTags []string }
			if err := json.NewDecoder(t).Decode(&manifest); err != nil {
				return nil, fmt.Errorf("read %s: %w", header.Name, err)
			}
			for _, m := range manifest {
				for _, tag := range m.RepoTags {
					names[tag] = true
				}
			}
		case "index.json":
			var index struct {
				Manifests []struct{ Annotations map[string]string }
			}
			if err := json.NewDecoder(t).Decode(&index); err != nil {
				return nil, fmt.Errorf("read %s: %w", header.Name, err)
			}
			for _, m := range index.Manifests {
				if name := m.Annotations["io.containerd.image.name"]; name != "" {
					names[name] = true
				}
			}
		}
	}
}

// readMemo reads what was loaded to a node: the digest of the archive by the
// name of the image.
func readMemo(path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	var known map[string]string
	if ok := json.Unmarshal(data, &known) == nil; !ok || known == nil {
		known = map[string]string{} // half written; load again
	}
	return known, nil
}
