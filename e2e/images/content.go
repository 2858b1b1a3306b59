package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// contentLines is how many of the largest files are listed.
const contentLines = 25

// Contents says what takes the space in an image, the largest first.
func Contents(b Built) (string, error) {
	t, layers, err := read(b)
	if err != nil {
		return "", err
	}
	type file struct {
		name string
		size int
	}
	var files []file
	for name, n := range t {
		if !n.Folder && n.Link == "" {
			files = append(files, file{name, len(n.Content)})
		}
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.name, b.name)) })
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %.1f MB in %d layers, %d files\n", b.Name, float64(b.SizeBytes)/1e6, layers, len(files))
	rest := 0
	for i, f := range files {
		if i < contentLines {
			fmt.Fprintf(&out, "%8.2f MB  %s\n", float64(f.size)/1e6, f.name)
			continue
		}
		rest += f.size
	}
	if len(files) > contentLines {
		fmt.Fprintf(&out, "%8.2f MB  in %d more\n", float64(rest)/1e6, len(files)-contentLines)
	}
	return out.String(), nil
}

// Unpack writes the files of an image below a folder, which is made.
func Unpack(b Built, dir string) error {
	t, _, err := read(b)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return t.writeDir(dir)
}

// rootKept is how long a folder of [Root] stays that was not asked for: tests of another
// clone may run in it.
const rootKept = 24 * time.Hour

// Root returns the folder of the cache with the files of the one image of conf.Names, which
// is made first if need be. It has another name for another content, and is readable for
// all. No program writes below it.
func Root(ctx context.Context, conf Config) (string, error) {
	built, err := Build(ctx, conf)
	if err != nil {
		return "", err
	}
	c, unlock, err := conf.open(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	b := built[0]
	dir := c.path("roots", named(b.Name, b.Architecture)+"-"+strings.TrimPrefix(b.Digest, "sha256:")[:16])
	now := time.Now()
	if _, err := os.Stat(dir); err == nil {
		return dir, os.Chtimes(dir, now, now)
	}
	old, _ := filepath.Glob(c.path("roots", named(b.Name, b.Architecture)+"-*"))
	for _, was := range old {
		own := regexp.MustCompile(regexp.QuoteMeta(named(b.Name, b.Architecture)) + "-[0-9a-f]{16}$").MatchString(was) // not of an image whose name begins so
		if info, err := os.Stat(was); own && err == nil && now.Sub(info.ModTime()) > rootKept {
			_ = os.RemoveAll(was)
		}
	}
	if err := os.MkdirAll(c.path("roots"), 0o755); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(c.path("roots"), ".new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	if err := errors.Join(os.Chmod(temp, 0o755), Unpack(b, temp)); err != nil {
		return "", err
	}
	return dir, os.Rename(temp, dir)
}

// read returns the files of an image and how many layers it has.
func read(b Built) (tree, int, error) {
	img, err := tarball.ImageFromPath(b.Tar, nil)
	if err != nil {
		return nil, 0, err
	}
	layers, err := img.Layers()
	if err != nil {
		return nil, 0, err
	}
	t := tree{}
	for _, l := range layers {
		r, err := l.Uncompressed()
		if err != nil {
			return nil, 0, err
		}
		err = t.readTar(r)
		r.Close()
		if err != nil {
			return nil, 0, err
		}
	}
	return t, len(layers), nil
}
