package images

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"
)

// Package is a package of Debian of which files are in an image.
type Package struct {
	Name, Version string
	// SHA256 is the digest of the package's file, in hexadecimal.
	SHA256 string
	// Files is how many of the package's files are in the image, with their content.
	Files int
}

// Packages returns the packages of Debian of which files are in an image that was built
// with this configuration, in the order of their names. A package counts if a file of the
// image has the content of one of its files: what was made anew out of one does not.
func Packages(ctx context.Context, conf Config, b Built) ([]Package, error) {
	c, unlock, err := conf.open(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	l, err := ReadList(conf.Root, b.Name)
	if err != nil {
		return nil, err
	}
	image, _, err := read(b)
	if err != nil {
		return nil, err
	}
	contents := map[[32]byte]bool{}
	for _, n := range image {
		if len(n.Content) > 0 {
			contents[sha256.Sum256(n.Content)] = true
		}
	}
	var candidates []string
	for of := &l; of != nil; of = of.base {
		if of.Debian == nil {
			continue
		}
		packages, err := c.packages(ctx, *of.Debian)
		if err != nil {
			return nil, err
		}
		candidates = append(candidates, packages...)
	}
	slices.Sort(candidates)
	var out []Package
	for _, name := range slices.Compact(candidates) {
		p, err := c.inImage(ctx, name, contents)
		if err != nil {
			return nil, err
		}
		if p.Files > 0 {
			out = append(out, p)
		}
	}
	return out, nil
}

// inImage counts the files of a package, given as "name=version", that are among the
// contents.
func (c *cache) inImage(ctx context.Context, name string, contents map[[32]byte]bool) (p Package, err error) {
	p.Name, p.Version, _ = strings.Cut(name, "=")
	if _, err := c.deb(name); err != nil {
		if err := c.download(ctx, []string{name}); err != nil {
			return p, err
		}
	}
	file, err := c.deb(name)
	if err != nil {
		return p, err
	}
	if p.SHA256, err = hashFile(file); err != nil {
		return p, err
	}
	files, err := c.unpackOne(ctx, name)
	if err != nil {
		return p, err
	}
	for _, n := range files {
		if len(n.Content) > 0 && contents[sha256.Sum256(n.Content)] {
			p.Files++
		}
	}
	return p, nil
}
