package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Load brings image archives (of docker save or of OCI) to every node, to all
// nodes at once. What a node has already, with the same content, is left out. An
// archive that cannot be loaded does not keep the others from being loaded; the
// error names all that failed.
func (c *Cluster) Load(ctx context.Context, tars ...string) error {
	s := newSteps(c.config.Out)
	var failed []error
	for _, path := range tars {
		if ctx.Err() != nil {
			return errors.Join(append(failed, context.Cause(ctx))...)
		}
		a, err := readArchive(path)
		if err != nil {
			failed = append(failed, fmt.Errorf("load image %s: %w", path, err))
			continue
		}
		loaded, err := c.loadOne(ctx, a)
		if err != nil {
			failed = append(failed, fmt.Errorf("load image %s: %w", path, err))
			continue
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
	return errors.Join(failed...)
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
