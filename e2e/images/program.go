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
// date. It returns the file of each.
func (c *cache) buildPrograms(ctx context.Context, conf Config, packages []string) (map[string]string, error) {
	folder := named("programs", conf.Architecture)
	if conf.Race {
		folder += "-race"
		if err := c.ensure(ctx, "gcc", "libc6-dev"); err != nil {
			return nil, err
		}
	}
	dir, err := filepath.Abs(c.path(folder))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	modules := map[string][]string{}
	files := map[string]string{}
	for _, p := range slices.Compact(slices.Sorted(slices.Values(packages))) {
		module, err := moduleOf(conf.Root, p)
		if err != nil {
			return nil, err
		}
		modules[module] = append(modules[module], p)
		files[p] = filepath.Join(dir, path.Base(p))
	}
	for module, packages := range modules {
		if err := build(ctx, conf, dir, module, packages); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// rootModule is the folder of the module that Podvisor's own programs are in.
const rootModule = "."

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
func build(ctx context.Context, conf Config, to, module string, packages []string) error {
	flags, cgo := "-s -w", "CGO_ENABLED=0"
	if module == rootModule {
		flags += " " + conf.version.Flags()
	}
	// A folder as output asks for the linking of each; go then compares the build
	// identifiers and links only what changed.
	args := []string{"build", "-trimpath", "-buildvcs=false", "-o", to + "/"}
	if conf.Race && module == rootModule {
		// The race detector needs cgo, and some images have no library of C. Names are
		// resolved by Go all the same, as long as /etc/resolv.conf says nothing unusual.
		flags, cgo = flags+" -linkmode=external -extldflags=-static", "CGO_ENABLED=1"
		args = append(args, "-race")
	}
	args = append(args, "-ldflags="+flags)
	for _, p := range packages {
		rel, err := filepath.Rel(module, path.Clean(p))
		if err != nil {
			return err
		}
		args = append(args, "./"+rel)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(conf.Root, module)
	cmd.Env = append(os.Environ(), cgo, "GOOS=linux", "GOARCH="+conf.Architecture, "GOFLAGS=")
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
