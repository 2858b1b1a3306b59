package images

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// The architectures of images, as in GOARCH, which are Debian's names too.
const (
	amd64 = "amd64"
	arm64 = "arm64"
)

// processors are what the architectures are called in the names of programs and folders,
// and in the headers of programs.
var processors = map[string]struct {
	name   string
	header uint16
}{amd64: {"x86_64", uint16(elf.EM_X86_64)}, arm64: {"aarch64", uint16(elf.EM_AARCH64)}}

// triplet is the name of Debian's folder for the libraries of an architecture.
func triplet(arch string) string { return processors[arch].name + "-linux-gnu" }

// named is the name of something of an architecture, with the architecture at its end
// unless that is amd64.
func named(name, arch string) string {
	if arch == amd64 {
		return name
	}
	return name + "-" + arch
}

// libraryDirs are where the dynamic loader looks without a cache of its own.
func libraryDirs(arch string) []string {
	t := triplet(arch)
	return []string{"/lib/" + t + "/", "/usr/lib/" + t + "/", "/lib/", "/usr/lib/", "/usr/lib/" + t + "/swtpm/"}
}

// elfMagic is what a program or library begins with.
var elfMagic = []byte("\x7fELF")

// linked returns the loader and the libraries that a program or library for the
// architecture asks for. The loader is not among the libraries, though some name it as
// one of theirs.
func linked(content []byte, arch string) (loader string, libraries []string, err error) {
	f, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return "", nil, err
	}
	if uint16(f.Machine) != processors[arch].header {
		return "", nil, fmt.Errorf("is for %s, and the image for %s", f.Machine, arch)
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
	return loader, slices.DeleteFunc(libraries, func(l string) bool { return strings.HasPrefix(path.Base(l), "ld-linux") }), err
}

func findLibrary(system tree, arch, name string) (string, bool) {
	for _, dir := range libraryDirs(arch) {
		if _, ok := system.resolve(dir + name); ok {
			return dir + name, true
		}
	}
	return "", false
}

// checkLayers checks the image that layers make together.
func (l List) checkLayers(layers []string) error {
	image, err := readLayers(layers)
	if err != nil {
		return err
	}
	return l.check(image)
}

// check returns all that keeps the programs of an image from being run on its architecture:
// one that is for another, a loader or library that is not there, and an entry point that
// is no program.
func (l List) check(image tree) error {
	var faults []error
	for _, name := range image.sorted() {
		n := image[name]
		if !bytes.HasPrefix(n.Content, elfMagic) {
			continue
		}
		loader, libraries, err := linked(n.Content, l.arch)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", name, err))
			continue
		}
		if _, ok := image.resolve(loader); loader != "" && !ok {
			faults = append(faults, fmt.Errorf("%s: its loader %s is not in the image", name, loader))
		}
		for _, library := range libraries {
			if _, ok := findLibrary(image, l.arch, library); !ok {
				faults = append(faults, fmt.Errorf("%s: its library %s is not in the image", name, library))
			}
		}
	}
	if len(l.Entrypoint) > 0 {
		name, _ := image.resolve(l.Entrypoint[0])
		if n := image[name]; !bytes.HasPrefix(n.Content, elfMagic) || n.Mode&0o111 == 0 {
			faults = append(faults, fmt.Errorf("the entry point %s is no program in the image", l.Entrypoint[0]))
		}
	}
	return errors.Join(faults...)
}
