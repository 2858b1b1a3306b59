package toolchain

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// Source returns the folder of this package in a checkout of the repository:
// the one above the working directory, else the one the program was built from.
func Source() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		for _, candidate := range []string{filepath.Join(dir, "toolchain"), filepath.Join(dir, "e2e", "toolchain")} {
			if isSource(candidate) {
				return candidate, nil
			}
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	if _, file, _, ok := runtime.Caller(0); ok && isSource(filepath.Dir(file)) {
		return filepath.Dir(file), nil
	}
	return "", errors.New("the sources of the toolchain (e2e/toolchain) are neither above the working directory " +
		"nor where this program was built: run it inside a checkout of podvisor")
}

func isSource(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "kubernetes", "go.mod"))
	return err == nil
}
