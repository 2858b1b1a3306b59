package images

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

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
