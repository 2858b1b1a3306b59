package images

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// places is the folder of the cache with a folder for each clone of the repository, with
// one for each version and tag. What the archives are made of is shared.
const places = "built"

// rootFile holds, in the folder of a clone, where the clone is.
const rootFile = "root"

// place returns the folder for the archives of a clone and version, and removes those of
// clones that are gone.
func (c *cache) place(conf Config) (string, error) {
	clones, err := filepath.Glob(c.path(places, "*", rootFile))
	if err != nil {
		return "", err
	}
	for _, file := range clones {
		root, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if _, err := os.Stat(string(root)); errors.Is(err, fs.ErrNotExist) {
			_ = os.RemoveAll(filepath.Dir(file))
		}
	}
	root, err := filepath.Abs(conf.Root)
	if err != nil {
		return "", err
	}
	clone := c.path(places, fmt.Sprintf("%s-%s", filepath.Base(root), key(root)[:8]))
	if err := c.write(filepath.Join(clone, rootFile), []byte(root)); err != nil {
		return "", err
	}
	version := cmp.Or(conf.Version, defaultTag)
	if conf.Tag != "" {
		version += "-" + conf.Tag
	}
	if conf.Race {
		version += "-race"
	}
	return filepath.Join(clone, version), nil
}

// labels are those of an image: of Podvisor's own they say what they were built from.
func (conf Config) labels(l List) map[string]string {
	all := maps.Clone(l.Labels)
	if !slices.Contains(Components(), l.Name) {
		return all
	}
	if all == nil {
		all = map[string]string{}
	}
	v := conf.version
	for name, value := range map[string]string{"version": v.Version, "revision": v.Commit, "created": v.Date} {
		if value != "" {
			all["org.opencontainers.image."+name] = value
		}
	}
	return all
}
