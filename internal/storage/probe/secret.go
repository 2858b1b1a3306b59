package probe

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// newest is the link by which the kubelet replaces all files of a Secret at once.
const newest = "..data"

// Secret reads the files of a Secret that the kubelet has mounted at dir, by the names
// of its keys. All are of the same version of the Secret. That nothing is there is a
// fact: then ok is false. If the kubelet removes the version while it is read, that is
// an error, and the next call reads the new one.
func Secret(dir string) (values map[string][]byte, ok bool, err error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer root.Close()
	version, err := root.OpenRoot(newest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read Secret at %s: %w", dir, err)
	}
	defer version.Close()
	if values, err = files(version); err != nil {
		return nil, false, fmt.Errorf("read Secret at %s: %w", dir, err)
	}
	return values, true, nil
}

// files are the contents of the files of a folder, which together are no larger than a
// Secret.
func files(root *os.Root) (map[string][]byte, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	values, left := map[string][]byte{}, int64(corev1.MaxSecretSize)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") || !e.Type().IsRegular() {
			continue
		}
		content, err := read(root, e.Name(), left)
		if err != nil {
			return nil, err
		}
		values[e.Name()] = content
		left -= int64(len(content))
	}
	return values, nil
}

// read reads a file that has at most so many bytes.
func read(root *os.Root, name string, most int64) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > most {
		return nil, fmt.Errorf("the files have more than %d bytes", corev1.MaxSecretSize)
	}
	return content, nil
}
