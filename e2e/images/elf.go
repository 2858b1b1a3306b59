package images

import (
	"bytes"
	"debug/elf"
	"fmt"
	"strings"
)

// libraryDirs are where the dynamic loader looks without a cache of its own.
var libraryDirs = []string{"/lib/x86_64-linux-gnu/", "/usr/lib/x86_64-linux-gnu/", "/lib/", "/usr/lib/", "/usr/lib/x86_64-linux-gnu/swtpm/"}

// linked returns the loader and the libraries that a program or library asks for.
func linked(content []byte) (loader string, libraries []string, err error) {
	f, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return "", nil, err
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		b := make([]byte, p.Filesz)
		if _, err := p.ReadAt(b, 0); err != nil {
			return "", nil, fmt.Errorf("read the loader's name: %w", err)
		}
		loader = strings.TrimRight(string(b), "\x00")
	}
	libraries, err = f.ImportedLibraries()
	return loader, libraries, err
}

func findLibrary(system tree, name string) (string, bool) {
	for _, dir := range libraryDirs {
		if _, ok := system.resolve(dir + name); ok {
			return dir + name, true
		}
	}
	return "", false
}
