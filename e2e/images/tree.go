package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// tree is a file system in memory, by absolute path.
type tree map[string]node

// node is a file, a folder (Content nil and Link empty) or a symbolic link.
type node struct {
	// Mode are the permission bits with setuid, setgid and sticky as in tar.
	Mode     int64
	UID, GID int
	Link     string
	Content  []byte
	Folder   bool
	// Package is the Debian package that the node is of; nil if it is of none, or comes
	// from a layer.
	Package *Package
}

// packages are those that files of the tree are of, sorted.
func (t tree) packages() []Package {
	seen := map[Package]bool{}
	for _, n := range t {
		if n.Package != nil && !n.Folder {
			seen[*n.Package] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
}

// add puts a node into the tree, with the folders above it.
func (t tree) add(name string, n node) {
	for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
		if _, ok := t[dir]; !ok {
			t[dir] = node{Mode: 0o755, Folder: true}
		}
	}
	t[name] = n
}

// resolve follows symbolic links and returns the path of what is there.
func (t tree) resolve(name string) (string, bool) {
	name = path.Clean(name)
	for range 40 {
		// A folder above may be a link, as /lib is on a merged system.
		next := ""
		for i := 1; i <= len(name); i++ {
			if i < len(name) && name[i] != '/' {
				continue
			}
			if n := t[name[:i]]; n.Link != "" {
				next = path.Join(n.Link, name[i:])
				if !path.IsAbs(n.Link) {
					next = path.Join(path.Dir(name[:i]), n.Link, name[i:])
				}
				break
			}
		}
		if next == "" {
			_, ok := t[name]
			return name, ok
		}
		name = next
	}
	return name, false
}

// match returns the paths that a pattern matches, sorted.
func (t tree) match(pattern string) []string {
	if _, ok := t.resolve(pattern); ok {
		return []string{pattern}
	}
	var found []string
	for name, n := range t {
		if ok, _ := path.Match(pattern, name); ok && !n.Folder {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// readTar adds the entries of a tar.
func (t tree) readTar(r io.Reader) error {
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := path.Clean("/" + h.Name)
		n := node{Mode: h.Mode & 0o7777, UID: h.Uid, GID: h.Gid}
		switch h.Typeflag {
		case tar.TypeDir:
			n.Folder = true
			if name == "/" || t[name].Link != "" {
				continue
			}
		case tar.TypeSymlink:
			n.Link = h.Linkname
		case tar.TypeReg:
			if n.Content, err = io.ReadAll(in); err != nil {
				return err
			}
		case tar.TypeLink:
			target, ok := t[path.Clean("/"+h.Linkname)]
			if !ok {
				return fmt.Errorf("%s is linked to %s, which is not there", name, h.Linkname)
			}
			n = target
		default:
			return fmt.Errorf("%s is of a kind that is not known: %q", name, h.Typeflag)
		}
		t.add(name, n)
	}
}

// writeTar writes the tree as a layer: sorted, without times and names of users.
func (t tree) writeTar(w io.Writer) error {
	out := tar.NewWriter(w)
	for _, name := range t.sorted() {
		n := t[name]
		h := &tar.Header{
			Name: strings.TrimPrefix(name, "/"), Mode: n.Mode, Uid: n.UID, Gid: n.GID,
			ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR,
		}
		switch {
		case n.Folder:
			h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		case n.Link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, n.Link
		default:
			h.Typeflag, h.Size = tar.TypeReg, int64(len(n.Content))
		}
		if err := out.WriteHeader(h); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if _, err := io.Copy(out, bytes.NewReader(n.Content)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return out.Close()
}

// sorted returns all paths, folders before what is in them.
func (t tree) sorted() []string {
	return slices.Sorted(maps.Keys(t))
}

// writeDir writes the tree below a folder.
func (t tree) writeDir(root string) error {
	for _, name := range t.sorted() {
		n, file := t[name], filepath.Join(root, name)
		var err error
		switch {
		case n.Folder:
			mode := fs.FileMode(n.Mode & 0o777)
			if n.Mode&0o1000 != 0 {
				mode |= fs.ModeSticky
			}
			err = errors.Join(os.MkdirAll(file, 0o755), os.Chmod(file, mode))
		case n.Link != "":
			err = os.Symlink(n.Link, file)
		default:
			err = writeSparse(file, n.Content, fs.FileMode(n.Mode))
		}
		if err == nil {
			err = os.Lchown(file, n.UID, n.GID)
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// writeSparse writes a file with holes in place of blocks of zeros, of which the flash of
// a firmware has many.
func writeSparse(name string, content []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	defer f.Close()
	zeros := make([]byte, 64<<10)
	for at := 0; at < len(content); at += len(zeros) {
		block := content[at:min(at+len(zeros), len(content))]
		if bytes.Equal(block, zeros[:len(block)]) {
			continue
		}
		if _, err := f.WriteAt(block, int64(at)); err != nil {
			return err
		}
	}
	return errors.Join(f.Truncate(int64(len(content))), f.Close())
}
