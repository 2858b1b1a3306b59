package images

import (
	"fmt"
	"os"
	"strings"
)

// DebianPackages reads the table of the Debian packages of which files are in the image,
// in the order of their names.
func (b Built) DebianPackages() ([]Package, error) {
	text, err := os.ReadFile(b.Packages)
	if err != nil {
		return nil, fmt.Errorf("read the packages of image %s: %w", b.Name, err)
	}
	var out []Package
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 3 {
			return nil, fmt.Errorf("read the packages of image %s: %s: %q is not a name, a version and a digest", b.Name, b.Packages, line)
		}
		out = append(out, Package{Name: f[0], Version: f[1], SHA256: f[2]})
	}
	return out, nil
}
