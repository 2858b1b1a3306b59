package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// group is a package of the model: the kinds of one API group.
type group struct {
	// dir is the folder of the package, whose last part is its name.
	dir string
	// name is the API group, and version its version.
	name, version string
}

// pkg is the name of the package.
func (g group) pkg() string { return path.Base(g.dir) }

// has says that the kind is of the group.
func (g group) has(d *definition) bool { return d.root.child("spec")["group"] == g.name }

// findGroups finds the packages at a folder and below it whose comment has the
// marker +groupName, by which controller-gen finds them too.
func findGroups(root string) ([]group, error) {
	var all []group
	err := filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.Name() != "doc.go" {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		g := group{dir: filepath.ToSlash(filepath.Dir(file))}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if v, ok := strings.CutPrefix(line, "// +groupName="); ok {
				g.name = v
			}
			if v, ok := strings.CutPrefix(line, "// +versionName="); ok {
				g.version = v
			}
		}
		if g.name != "" {
			all = append(all, g)
		}
		return nil
	})
	return all, err
}
