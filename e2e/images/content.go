package images

import (
	"archive/tar"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// contentLines is how many of the largest files are listed.
const contentLines = 25

// Contents says what takes the space in an image, the largest first.
func Contents(b Built) (string, error) {
	img, err := tarball.ImageFromPath(b.Tar, nil)
	if err != nil {
		return "", err
	}
	layers, err := img.Layers()
	if err != nil {
		return "", err
	}
	type file struct {
		name string
		size int64
	}
	var files []file
	for _, l := range layers {
		r, err := l.Uncompressed()
		if err != nil {
			return "", err
		}
		for in := tar.NewReader(r); ; {
			h, err := in.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				r.Close()
				return "", err
			}
			if h.Typeflag == tar.TypeReg {
				files = append(files, file{"/" + h.Name, h.Size})
			}
		}
		r.Close()
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.name, b.name)) })
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %.1f MB in %d layers, %d files\n", b.Name, float64(b.SizeBytes)/1e6, len(layers), len(files))
	var rest int64
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
