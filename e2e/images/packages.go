package images

import (
	"context"
	"crypto/sha256"
	"os"
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
	contents := map[[sha256.Size]byte]bool{}
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
func (c *cache) inImage(ctx context.Context, name string, contents map[[sha256.Size]byte]bool) (p Package, err error) {
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
	sums, err := c.sums(ctx, name, p.SHA256)
	for i := 0; i < len(sums); i += sha256.Size {
		if contents[[sha256.Size]byte(sums[i:i+sha256.Size])] {
			p.Files++
		}
	}
	return p, err
}

// sums are the digests of the contents of a package's files, one after the other. To
// unpack it takes long, so they are kept under the digest of its file.
func (c *cache) sums(ctx context.Context, name, sum string) ([]byte, error) {
	memo := c.path("contents", sum)
	if b, err := os.ReadFile(memo); err == nil && len(b)%sha256.Size == 0 {
		return b, nil
	}
	files, err := c.unpackOne(ctx, name)
	if err != nil {
		return nil, err
	}
	var all []byte
	for _, path := range files.sorted() {
		if content := files[path].Content; len(content) > 0 {
			one := sha256.Sum256(content)
			all = append(all, one[:]...)
		}
	}
	return all, c.write(memo, all)
}
