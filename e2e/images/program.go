package images

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// buildPrograms links main packages of the repository statically into the cache, with
// one run of go build for each module, which does nothing for those that are up to
// date. version is what they say that they are, or empty. It returns the file of each.
func (c *cache) buildPrograms(ctx context.Context, root, version string, packages []string) (map[string]string, error) {
	dir, err := filepath.Abs(c.path("programs"))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	modules := map[string][]string{}
	files := map[string]string{}
	for _, p := range slices.Compact(slices.Sorted(slices.Values(packages))) {
		module, err := moduleOf(root, p)
		if err != nil {
			return nil, err
		}
		modules[module] = append(modules[module], p)
		files[p] = filepath.Join(dir, path.Base(p))
	}
	for module, packages := range modules {
		if err := build(ctx, filepath.Join(root, module), dir, module, version, packages); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// moduleOf is the folder below root of the module that a package is in.
func moduleOf(root, pkg string) (string, error) {
	for dir := path.Clean(pkg); ; dir = path.Dir(dir) {
		_, err := os.Stat(filepath.Join(root, dir, "go.mod"))
		if err == nil || !errors.Is(err, fs.ErrNotExist) || dir == "." {
			return dir, err
		}
	}
}

// build links packages of the module whose folder is module below the root of the
// repository, each into a file of its name in the folder to.
func build(ctx context.Context, folder, to, module, version string, packages []string) error {
	// A folder as output asks for the linking of each; go then compares the build
	// identifiers and links only what changed.
	flags := "-s -w"
	if version != "" {
		flags += " -X main.version=" + version
	}
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=" + flags, "-o", to + "/"}
	for _, p := range packages {
		rel, err := filepath.Rel(module, path.Clean(p))
		if err != nil {
			return err
		}
		args = append(args, "./"+rel)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", strings.Join(packages, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// hashFile names the content of a file.
func hashFile(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(b)), nil
}
