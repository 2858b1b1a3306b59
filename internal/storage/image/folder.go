package image

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// folder makes the image of a folder's files at path. What leads out of the folder is
// an error, and so is more than a folder may have, which wraps [vmi.ErrInvalid].
func folder(path string, f storage.Folder) error {
	root, err := os.OpenRoot(f.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return iso(path, f.Label, func(tree string) (int64, error) {
		c := copying{from: root, to: tree}
		err := c.dir(".", 0)
		return c.size, err
	})
}

// copying copies the files of a folder as the kubelet mounts them: a name that begins
// with two dots is the kubelet's own, and the others may be links to what is in it.
type copying struct {
	from  *os.Root
	to    string
	count int   // of files and folders
	bytes int64 // of the files
	size  int64 // of the file system
}

func (c *copying) dir(name string, depth int) error {
	if depth > storage.MaxFolderDepth {
		return fmt.Errorf("%s: more than %d folders in each other: %w", name, storage.MaxFolderDepth, vmi.ErrInvalid)
	}
	d, err := c.from.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	// One more than may be there, and the kubelet's own.
	entries, err := d.ReadDir(storage.MaxFolderFiles + 8)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		if c.count++; c.count > storage.MaxFolderFiles {
			return fmt.Errorf("more than %d files: %w", storage.MaxFolderFiles, vmi.ErrInvalid)
		}
		if len(e.Name()) > storage.MaxFolderName {
			return fmt.Errorf("the name %s has more than %d characters, which an image of files cannot hold: %w", e.Name(), storage.MaxFolderName, vmi.ErrInvalid)
		}
		if err := c.entry(path.Join(name, e.Name()), depth); err != nil {
			return err
		}
	}
	return nil
}

func (c *copying) entry(name string, depth int) error {
	info, err := c.from.Stat(name)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		c.size += inISO(isoBlock)
		if err := os.Mkdir(filepath.Join(c.to, name), 0o755); err != nil {
			return err
		}
		return c.dir(name, depth+1)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file but %s: %w", name, info.Mode().Type(), vmi.ErrInvalid)
	}
	return c.file(name)
}

func (c *copying) file(name string) error {
	f, err := c.from.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	to, err := os.OpenFile(filepath.Join(c.to, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, io.LimitReader(f, storage.MaxFolderBytes-c.bytes+1))
	c.bytes += n
	c.size += inISO(n)
	err = errors.Join(err, to.Close())
	if err == nil && c.bytes > storage.MaxFolderBytes {
		err = fmt.Errorf("the files have more than %d bytes: %w", storage.MaxFolderBytes, vmi.ErrInvalid)
	}
	return err
}
