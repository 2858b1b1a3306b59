package images

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// buildPrograms links main packages of the repository statically into the cache, all
// in one run of go build, which does nothing for those that are up to date. It returns
// the file of each.
func (c *cache) buildPrograms(ctx context.Context, root string, packages []string) (map[string]string, error) {
	packages = slices.Compact(slices.Sorted(slices.Values(packages)))
	if len(packages) == 0 {
		return nil, nil
	}
	dir := c.path("programs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	// A folder as output asks for the linking of each; go then compares the build
	// identifiers and links only what changed.
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", dir + "/"}, packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build %s: %w\n%s", strings.Join(packages, " "), err, strings.TrimSpace(string(out)))
	}
	files := map[string]string{}
	for _, p := range packages {
		files[p] = filepath.Join(dir, path.Base(p))
	}
	return files, nil
}

// hashFile names the content of a file.
func hashFile(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(b)), nil
}
