package images

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// Names are the images of the project, in the order in which they are built.
func Names() []string {
	return []string{"virt-controller", "virt-handler", "virt-launcher", "virt-launcher-full", "demo-guest", "tools"}
}

// Extra are the images that only single tests need. Nothing builds them that does not
// name them.
func Extra() []string { return []string{"debian-guest", "arm64-emulator"} }

// Components are the images that an installation needs.
func Components() []string { return Names()[:4] }

// Architectures are those that an image is built for, as in GOARCH. Nodes are of both,
// and one test boots a guest of arm64.
func Architectures(name string) []string {
	if name == "demo-guest" || slices.Contains(Components(), name) {
		return []string{amd64, arm64}
	}
	return []string{amd64}
}

// defaultTag is the tag of images that are given none.
const defaultTag = "dev"

// Reference is the name under which a cluster knows a locally built image.
func Reference(name string) string { return reference(name, "") }

func reference(name, tag string) string {
	return "localhost/podvisor/" + name + ":" + cmp.Or(tag, defaultTag)
}

// List declares what is in an image: the content of image.yaml.
type List struct {
	// Name of the image; that of its folder.
	Name string `json:"name"`
	// From names an image whose content this one has too, in the same layers, which a
	// node has once. Empty: none.
	From string `json:"from"`
	// Debian says which packages the image is made of; nil for none.
	Debian *Debian `json:"debian"`
	// Keep names files of the packages, as patterns. Programs and libraries bring
	// the libraries that they are linked with. ${triplet} stands for the folder of
	// libraries of the architecture, as in x86_64-linux-gnu, and ${processor} for its name
	// in those of programs, as in x86_64.
	Keep []string `json:"keep"`
	// Each has what only the image of one architecture has, by its name.
	Each map[string]Part `json:"each"`
	// Capabilities is the folder for what libvirt found out about the image's QEMU;
	// empty for none.
	Capabilities string `json:"capabilities"`
	// Busybox are the names of commands to link to /bin/busybox.
	Busybox []string `json:"busybox"`
	// Files are written as they are given.
	Files []File `json:"files"`
	// Programs of this repository, in a layer of their own.
	Programs []Program `json:"programs"`
	// Disk makes the image a container disk; nil if it is not one.
	Disk *Disk `json:"disk"`
	// System makes the image a container disk with all of Debian's packages installed;
	// nil if it is not one.
	System *System `json:"system"`

	Entrypoint []string          `json:"entrypoint"`
	User       string            `json:"user"`
	Labels     map[string]string `json:"labels"`

	// base is the declaration of From.
	base *List
	// arch is the architecture of the image, as in GOARCH.
	arch string
}

// Part is what is in the image of one architecture besides.
type Part struct {
	// Packages and Keep are more of those of Debian and of the image.
	Packages []string `json:"packages"`
	Keep     []string `json:"keep"`
	// Modules and CommandLine are more of those of the disk.
	Modules     []string `json:"modules"`
	CommandLine string   `json:"commandLine"`
}

// Debian names packages of a release.
type Debian struct {
	// Suite is the release's name, which a file of images/suites has the sources of.
	Suite string `json:"suite"`
	// Packages come with all they depend on, without what they recommend.
	Packages []string `json:"packages"`
	// Only limits what is unpacked to packages of these names, given as patterns.
	// Empty means all.
	Only []string `json:"only"`

	// arch is the architecture of the packages.
	arch string
}

// File is a file or folder of the image, owned by root.
type File struct {
	Path      string `json:"path"`
	Content   string `json:"content"`
	Directory bool   `json:"directory"`
	// Mode in octal; empty means 0644, or 0755 for a folder.
	Mode string `json:"mode"`
}

// Program is a main package of the repository, linked statically.
type Program struct {
	Package string `json:"package"`
	Path    string `json:"path"`
}

// Disk declares a bootable disk with everything in its initial RAM disk.
type Disk struct {
	// Path of the disk in the image.
	Path string `json:"path"`
	// Init is the main package of process 1.
	Init string `json:"init"`
	// Modules of the kernel, without those that they need.
	Modules []string `json:"modules"`
	// CommandLine of the kernel.
	CommandLine string `json:"commandLine"`
	// Later names files of the packages, as patterns, that the guest reads when it
	// has booted. They bring their libraries, as those of Keep do.
	Later []string `json:"later"`
}

// ReadList reads the declaration of an image of the repository at root, for an
// architecture as in GOARCH.
func ReadList(root, name, arch string) (List, error) {
	if all := slices.Concat(Names(), Extra()); !slices.Contains(all, name) {
		return List{}, fmt.Errorf("no image %q; there are %q", name, all)
	}
	text, err := os.ReadFile(filepath.Join(root, "images", name, "image.yaml"))
	if err != nil {
		return List{}, err
	}
	if all := Architectures(name); !slices.Contains(all, arch) {
		return List{}, fmt.Errorf("image %s is not for %q; it is for %q", name, arch, all)
	}
	l, err := parseList(text, arch)
	if err == nil && l.Name != name {
		err = fmt.Errorf("is called %q", l.Name)
	}
	if err == nil && l.From != "" {
		var base List
		base, err = ReadList(root, l.From, arch)
		l.base = &base
	}
	if err != nil {
		return List{}, fmt.Errorf("list of image %s: %w", name, err)
	}
	return l, nil
}

func parseList(text []byte, arch string) (List, error) {
	var l List
	if err := yaml.UnmarshalStrict(text, &l); err != nil {
		return List{}, err
	}
	var errs []error
	l.arch = arch
	if d := l.Debian; d != nil {
		d.arch = arch
		if own := l.Each[arch].Packages; len(own) > 0 {
			d.Packages = slices.Sorted(slices.Values(slices.Concat(d.Packages, own)))
		}
	}
	if d := l.Disk; d != nil {
		d.Modules = append(d.Modules, l.Each[arch].Modules...)
		d.CommandLine = strings.TrimSpace(l.Each[arch].CommandLine + " " + d.CommandLine)
	}
	l.Keep = append(l.Keep, l.Each[arch].Keep...)
	names := strings.NewReplacer("${triplet}", triplet(arch), "${processor}", processors[arch].name)
	for i := range l.Keep {
		l.Keep[i] = names.Replace(l.Keep[i])
	}
	l.Each = nil
	for _, f := range l.Files {
		_, err := f.mode()
		errs = append(errs, err)
	}
	if (len(l.Keep) > 0 || l.Disk != nil || l.System != nil) && l.Debian == nil {
		errs = append(errs, errors.New("keeps files of packages and names no packages"))
	}
	return l, errors.Join(errs...)
}

// packages are those of Go that the image is built from.
func (l List) packages() []string {
	var pkgs []string
	if l.base != nil {
		pkgs = l.base.packages()
	}
	for _, p := range l.Programs {
		pkgs = append(pkgs, p.Package)
	}
	if l.Disk != nil {
		pkgs = append(pkgs, l.Disk.Init)
	}
	return pkgs
}

// locked are the packages that the lock has versions of; nil for none.
func (l List) locked() *Debian {
	if l.System != nil {
		return loader(l.Debian.Suite, l.arch)
	}
	return l.Debian
}

func (f File) mode() (fs.FileMode, error) {
	switch {
	case f.Mode == "" && f.Directory:
		return 0o755, nil
	case f.Mode == "":
		return 0o644, nil
	}
	n, err := strconv.ParseUint(f.Mode, 8, 12)
	if err != nil {
		return 0, fmt.Errorf("mode of %s: %w", f.Path, err)
	}
	return fs.FileMode(n), nil
}
