package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
)

// root makes the file system of an image without its programs, and without what is in
// the layers below.
func (c *cache) root(ctx context.Context, l List, below []string) (tree, error) {
	image, err := readLayers(below)
	if err != nil {
		return nil, err
	}
	there := slices.Collect(maps.Keys(image))
	defer func() {
		for _, name := range there {
			delete(image, name)
		}
	}()
	if l.Debian != nil {
		system, err := c.unpacked(ctx, l)
		if err != nil {
			return nil, err
		}
		if err := keep(image, system, l.arch, l.Keep); err != nil {
			return nil, err
		}
	}
	for _, name := range l.Busybox {
		image.add("/bin/"+name, node{Mode: 0o777, Link: "busybox"})
	}
	for _, f := range l.Files {
		mode, err := f.mode()
		if err != nil {
			return nil, err
		}
		image.add(f.Path, node{Mode: int64(mode), Content: []byte(f.Content), Folder: f.Directory})
	}
	// The places where a runtime mounts things have to be there where the root is
	// read-only.
	for _, dir := range []string{"/dev", "/etc", "/proc", "/run", "/sys", "/var"} {
		if _, ok := image[dir]; !ok {
			image.add(dir, node{Mode: 0o755, Folder: true})
		}
	}
	if _, ok := image["/var/run"]; !ok {
		image.add("/var/run", node{Mode: 0o777, Link: "/run"})
	}
	// Where the daemon of the image does not run, libvirt asks in the pod.
	if l.Capabilities == "" || l.arch != runtime.GOARCH {
		return image, nil
	}
	return image, c.addCapabilities(ctx, image, l.Capabilities)
}

// readLayers are the files of layers, the lowest first.
func readLayers(files []string) (tree, error) {
	all := tree{}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(all.readTar(f), f.Close()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// unpacked are all files of the packages that the lock has for an image.
func (c *cache) unpacked(ctx context.Context, l List) (tree, error) {
	d := l.locked()
	packages, err := c.lock.of(l.Name, *d)
	if err != nil {
		return nil, err
	}
	return c.unpack(ctx, *d, packages)
}

// keep copies files of the packages into the image, and the libraries of those that
// are linked dynamically.
func keep(image, system tree, arch string, patterns []string) error {
	for _, pattern := range patterns {
		names := system.match(pattern)
		if len(names) == 0 {
			return fmt.Errorf("no file of the packages matches %s", pattern)
		}
		for _, name := range names {
			if err := keepFile(image, system, arch, name); err != nil {
				return fmt.Errorf("keep %s: %w", name, err)
			}
		}
	}
	return nil
}

// keepFile copies a file under the name it is asked for by, so that links to
// versions of libraries are not needed.
func keepFile(image, system tree, arch, name string) error {
	// Libraries are below /usr, as where they are installed, with links from where the
	// loader is looked for.
	for _, dir := range []string{"/lib", "/lib64"} {
		if rest, ok := strings.CutPrefix(name, dir+"/"); ok && system[dir].Link != "" {
			image.add(dir, node{Mode: 0o777, Link: "usr" + dir})
			name = "/usr" + dir + "/" + rest
		}
	}
	if _, ok := image[name]; ok {
		return nil
	}
	real, ok := system.resolve(name)
	if !ok {
		return fmt.Errorf("is not in the packages")
	}
	n := system[real]
	if n.Folder {
		return fmt.Errorf("is a folder")
	}
	// Nothing in the image is setuid or belongs to another than root.
	image.add(name, node{Mode: n.Mode & 0o755, Content: n.Content, Package: n.Package})
	if !bytes.HasPrefix(n.Content, elfMagic) {
		return nil
	}
	loader, libraries, err := linked(n.Content, arch)
	if err != nil {
		return err
	}
	if loader != "" {
		if err := keepFile(image, system, arch, loader); err != nil {
			return fmt.Errorf("loader %s: %w", loader, err)
		}
	}
	for _, library := range libraries {
		file, ok := findLibrary(system, arch, library)
		if !ok {
			return fmt.Errorf("library %s is not in the packages", library)
		}
		if err := keepFile(image, system, arch, file); err != nil {
			return fmt.Errorf("library %s: %w", library, err)
		}
	}
	return nil
}
