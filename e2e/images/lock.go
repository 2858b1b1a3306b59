package images

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Package is a Debian package of one version.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// SHA256 of its file.
	SHA256 string `json:"sha256"`
}

// String is the package as apt takes it.
func (p Package) String() string { return p.Name + "=" + p.Version }

// lock says of which packages the images are made: the content of images/lock.yaml.
type lock struct {
	// Images are the names of the packages of each image. The names of those of another
	// architecture than amd64 end with it, here and below.
	Images map[string]lockedImage `json:"images"`
	// Suites are the packages of all images of a suite, by their names.
	Suites map[string]map[string]lockedPackage `json:"suites"`
}

type lockedImage struct {
	// Asked is the declaration that the packages follow from.
	Asked    string   `json:"asked"`
	Packages []string `json:"packages"`
}

type lockedPackage struct {
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
}

// lockName is the file of the lock below the root of the repository.
const lockName = "images/lock.yaml"

const lockHead = `# Written by make images-lock. These are the versions and digests of the Debian packages
# of which make images makes the images.
`

// asked is a declaration in one line.
func (d Debian) asked() string {
	return strings.TrimSpace(d.Suite + ": " + strings.Join(d.Packages, " ") + " only " + strings.Join(d.Only, " "))
}

// readLock reads the lock of the repository. There may be none yet.
func readLock(root string) (lock, error) {
	var l lock
	text, err := os.ReadFile(filepath.Join(root, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err == nil {
		err = yaml.UnmarshalStrict(text, &l)
	}
	if err != nil {
		return lock{}, fmt.Errorf("read %s: %w", lockName, err)
	}
	return l, nil
}

// write writes the lock of the repository.
func (l lock) write(root string) error {
	text, err := yaml.Marshal(l)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, lockName), append([]byte(lockHead), text...), 0o644)
}

// of are the packages of an image, sorted by their names.
func (l lock) of(image string, d Debian) ([]Package, error) {
	locked, ok := l.Images[named(image, d.arch)]
	if !ok || locked.Asked != d.asked() {
		return nil, fmt.Errorf("%s does not have the packages that images/%s/image.yaml asks for: run make images-lock", lockName, image)
	}
	var out []Package
	for _, name := range locked.Packages {
		p, ok := l.Suites[named(d.Suite, d.arch)][name]
		if !ok {
			return nil, fmt.Errorf("%s has no version of %s for %s: run make images-lock", lockName, name, named(image, d.arch))
		}
		out = append(out, Package{Name: name, Version: p.Version, SHA256: p.SHA256})
	}
	return out, nil
}

// put replaces the packages of an image. An older version of a package that another
// image has too is replaced there as well: a suite has one version of each.
func (l *lock) put(image string, d Debian, packages []Package) {
	if l.Images == nil {
		l.Images, l.Suites = map[string]lockedImage{}, map[string]map[string]lockedPackage{}
	}
	if l.Suites[named(d.Suite, d.arch)] == nil {
		l.Suites[named(d.Suite, d.arch)] = map[string]lockedPackage{}
	}
	locked := lockedImage{Asked: d.asked()}
	for _, p := range packages {
		locked.Packages = append(locked.Packages, p.Name)
		l.Suites[named(d.Suite, d.arch)][p.Name] = lockedPackage{Version: p.Version, SHA256: p.SHA256}
	}
	l.Images[named(image, d.arch)] = locked
}

// changes are the differences between two locks, a line each.
func (l lock) changes(next lock) []string {
	var out []string
	for _, suite := range slices.Sorted(maps.Keys(next.Suites)) {
		was, is := l.Suites[suite], next.Suites[suite]
		names := slices.Sorted(maps.Keys(is))
		for name := range was {
			if _, ok := is[name]; !ok {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			switch a, b := was[name], is[name]; {
			case a == b:
			case a.Version == b.Version:
				out = append(out, fmt.Sprintf("%s %s has another digest: %s, before %s", name, a.Version, b.SHA256, a.SHA256))
			default:
				out = append(out, fmt.Sprintf("%s %s, before %s", name, cmp.Or(b.Version, "is gone"), cmp.Or(a.Version, "absent")))
			}
		}
	}
	return out
}

// lists are the declarations of all images, for each architecture.
func (c *cache) lists() ([]List, error) {
	var out []List
	for _, name := range slices.Concat(Names(), Extra()) {
		for _, arch := range Architectures(name) {
			l, err := ReadList(c.repo, name, arch)
			if err != nil {
				return nil, err
			}
			out = append(out, l)
		}
	}
	return out, nil
}

// newest resolves the packages of all images anew, or of those of one suite; empty stands
// for all suites. The others stay as they are in the lock.
func (c *cache) newest(ctx context.Context, suite string) (lock, error) {
	var next lock
	updated := map[string]bool{}
	lists, err := c.lists()
	if err != nil {
		return lock{}, err
	}
	for _, l := range lists {
		name, d := l.Name, l.locked()
		if d == nil {
			continue
		}
		if suite != "" && d.Suite != suite {
			if packages, err := c.lock.of(name, *d); err == nil {
				next.put(name, *d, packages)
			}
			continue
		}
		a, of := apt{c, d.Suite, d.arch}, named(d.Suite, d.arch)
		if !updated[of] {
			if err := a.update(ctx); err != nil {
				return lock{}, err
			}
			updated[of] = true
		}
		packages, err := a.resolve(ctx, *d)
		if err != nil {
			return lock{}, fmt.Errorf("packages of image %s: %w", named(name, d.arch), err)
		}
		next.put(name, *d, packages)
	}
	return next, nil
}

// Lock resolves the packages of all images anew and writes the lock of the repository.
// What differs from the one before is written to conf.Out.
func Lock(ctx context.Context, conf Config) error {
	c, unlock, err := conf.open(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	was, err := readLock(conf.Root)
	if err != nil {
		return err
	}
	next, err := c.newest(ctx, "")
	if err != nil {
		return err
	}
	changes := was.changes(next)
	for _, line := range changes {
		c.say("  %s", line)
	}
	c.say("%s: %d packages differ", lockName, len(changes))
	return next.write(conf.Root)
}

// supersede takes the newest packages of a suite in place of those of the lock, for this
// build alone.
func (c *cache) supersede(ctx context.Context, suite string, cause error) error {
	c.say("  %v", cause)
	next, err := c.newest(ctx, suite)
	if err != nil {
		return errors.Join(cause, err)
	}
	c.say("  the newest versions are taken, which %s does not have; make images-lock writes them there:", lockName)
	for _, line := range c.lock.changes(next) {
		c.say("    %s", line)
	}
	c.lock = next
	return nil
}

// table lists packages with their versions and digests, a line each.
func table(packages []Package) []byte {
	var b bytes.Buffer
	for _, p := range packages {
		fmt.Fprintf(&b, "%s\t%s\t%s\n", p.Name, p.Version, p.SHA256)
	}
	return b.Bytes()
}
