package images

import (
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// sources of this package: a change of how something is made makes it anew.
//
//go:embed *.go
var sources embed.FS

// cache is the folder with what was built and downloaded.
type cache struct {
	dir string
	out io.Writer
	// built is the folder for the archives of this clone and version.
	built string
	// repo is the folder of the repository whose images are made, and lock what it has
	// written down of packages.
	repo string
	lock lock
}

// openCache takes the folder for this process alone until the returned function
// is called.
func openCache(dir string, out io.Writer) (*cache, func(), error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, nil, err
	}
	c := &cache{dir: dir, out: out}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		c.say("waiting for another build of images to end")
		if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
			return nil, nil, fmt.Errorf("lock %s: %w", lock.Name(), err)
		}
	}
	return c, func() { lock.Close() }, nil
}

func (c *cache) path(names ...string) string {
	return filepath.Join(append([]string{c.dir}, names...)...)
}

func (c *cache) say(format string, args ...any) {
	fmt.Fprintf(c.out, format+"\n", args...)
}

// write puts a file into the cache: whole or not at all.
func (c *cache) write(name string, content []byte) error {
	return c.create(name, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// create lets fill write a file of the cache.
func (c *cache) create(name string, fill func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := fill(f); err != nil {
		f.Close()
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// layer returns the file of a layer, made from a tree if it is not there yet.
func (c *cache) layer(key string, build func() (tree, []Package, error)) (string, error) {
	file := c.path("layers", key+".tar")
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	t, packages, err := build()
	if err != nil {
		return "", err
	}
	// First the table: a layer that is there has one.
	if err := c.write(packagesOf(file), table(packages)); err != nil {
		return "", err
	}
	return file, c.create(file, t.writeTar)
}

// packagesOf is the table of the packages of which files are in a layer.
func packagesOf(layer string) string { return strings.TrimSuffix(layer, ".tar") + ".packages" }

// writePackages writes the table of an image's packages beside the image.
func (c *cache) writePackages(l List, layers []string) (string, error) {
	var lines []string
	for _, layer := range layers {
		b, err := os.ReadFile(packagesOf(layer))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // one of a program has none
			return "", err
		}
		lines = append(lines, slices.Collect(strings.Lines(string(b)))...)
	}
	slices.Sort(lines)
	file := filepath.Join(c.built, named(l.Name, l.arch)+".packages")
	return file, c.write(file, []byte(strings.Join(slices.Compact(lines), "")))
}

// key names something by all that it depends on.
func key(parts ...string) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%d:%s;", len(p), p)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))[:32]
}

// builder names this version of the package.
func builder() string {
	sum := sha256.New()
	files, _ := sources.ReadDir(".")
	for _, f := range files {
		if strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		b, _ := sources.ReadFile(f.Name())
		sum.Write(b)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// source names this version of a file of the package.
func source(name string) (string, error) {
	b, err := sources.ReadFile(name)
	return fmt.Sprintf("%x", sha256.Sum256(b)), err
}
