package release

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// sumsFile has the checksums of all other files of a release, as sha256sum writes them.
const sumsFile = "SHA256SUMS"

// writeSums writes the checksums, in the order of the paths.
func writeSums(dir string) error {
	var out strings.Builder
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		sum, err := sumOf(file)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		fmt.Fprintf(&out, "%s  %s\n", sum, rel)
		return err
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, sumsFile), []byte(out.String()), 0o644)
}

func sumOf(file string) (_ string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}
