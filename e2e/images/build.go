package images

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/podvisor/podvisor/e2e/debian"
	"github.com/podvisor/podvisor/internal/version"
)

// Config says what to build.
type Config struct {
	// Out gets one line per image and what is being waited for; nil for nothing.
	Out io.Writer
	// Names of the images; empty means all.
	Names []string
	// Version is what the programs say that they are, as in v1.2.3. Empty: the version of
	// the commit, as [Version] has it.
	Version string
	// Tag is the tag of the images' names; empty means dev.
	Tag string
	// Architecture is that of the images, as in GOARCH. Empty: amd64.
	Architecture string
	// Race gives Podvisor's own programs the race detector of Go.
	Race bool
	// Root is the folder of the repository; empty means that of the working
	// directory.
	Root string
	// Cache is the folder for what was built and downloaded; empty means
	// podvisor/images in the user's cache directory.
	Cache string

	// version is Version with the commit.
	version version.Info
}

// Built is an image that is ready to be imported.
type Built struct {
	Name      string `json:"name"`
	Reference string `json:"reference"`
	// Architecture is as in GOARCH.
	Architecture string `json:"architecture"`
	// Tar is the file of the docker-archive.
	Tar string `json:"tar"`
	// Packages is the file with the Debian packages of which files are in the image: in
	// each line a name, a version and the SHA-256 of the package, with tabs between.
	Packages string `json:"packages"`
	// SizeBytes is the size of the layers, which are not compressed.
	SizeBytes int64 `json:"sizeBytes"`
	// Digest of the image's manifest: equal digests are equal images.
	Digest string `json:"digest"`
	// Cached says that nothing had to be made.
	Cached bool `json:"-"`
	// Took is the time spent on this image, without that of building Go programs.
	Took time.Duration `json:"-"`
}

// Build makes the images that are not up to date and returns all that were asked for,
// in the order of their names in Config.
func Build(ctx context.Context, conf Config) ([]Built, error) {
	c, unlock, err := conf.open(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return c.build(ctx, conf)
}

// open completes the configuration and takes the cache until the returned function is
// called.
func (conf *Config) open(ctx context.Context) (*cache, func(), error) {
	if conf.Out == nil {
		conf.Out = io.Discard
	}
	conf.Architecture = cmp.Or(conf.Architecture, amd64)
	if _, ok := processors[conf.Architecture]; !ok {
		return nil, nil, fmt.Errorf("there are no images for %q: choose amd64 or arm64", conf.Architecture)
	}
	if len(conf.Names) == 0 {
		conf.Names = slices.DeleteFunc(Names(), func(name string) bool { return !slices.Contains(Architectures(name), conf.Architecture) })
	}
	var err error
	if conf.Root, err = repository(conf.Root); err != nil {
		return nil, nil, err
	}
	conf.version = Version(ctx, conf.Root, conf.Version)
	if conf.Cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return nil, nil, err
		}
		conf.Cache = filepath.Join(dir, "podvisor", "images")
	}
	c, unlock, err := openCache(conf.Cache, conf.Out)
	if err != nil {
		return nil, nil, err
	}
	c.repo = conf.Root
	if c.built, err = c.place(*conf); err == nil {
		c.lock, err = readLock(conf.Root)
	}
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return c, unlock, nil
}

func (c *cache) build(ctx context.Context, conf Config) ([]Built, error) {
	var lists []List
	var packages []string
	for _, name := range conf.Names {
		l, err := ReadList(conf.Root, name, conf.Architecture)
		if err != nil {
			return nil, err
		}
		lists, packages = append(lists, l), append(packages, l.packages()...)
	}
	began := time.Now()
	programs, err := c.buildPrograms(ctx, conf, packages)
	if err != nil {
		return nil, err
	}
	if len(packages) > 0 {
		c.say("built Go programs: %d, in %.1f s", len(programs), time.Since(began).Seconds())
	}
	var built []Built
	for _, l := range lists {
		began := time.Now()
		b, err := c.image(ctx, conf, l, programs)
		if errors.Is(err, errSuperseded) {
			if err = c.supersede(ctx, l.locked().Suite, err); err == nil {
				b, err = c.image(ctx, conf, l, programs)
			}
		}
		if err != nil {
			return built, fmt.Errorf("build image %s: %w", l.Name, err)
		}
		b.Took = time.Since(began)
		c.say("%s", b)
		built = append(built, b)
	}
	return built, nil
}

// String is the line that is printed for an image.
func (b Built) String() string {
	how := "built"
	if b.Cached {
		how = "unchanged"
	}
	return fmt.Sprintf("%-24s %6.1f MB  %s  %-9s %5.1f s  %s", named(b.Name, b.Architecture), float64(b.SizeBytes)/1e6, b.Digest[:19], how, b.Took.Seconds(), b.Tar)
}

// image makes one image, or finds that it is there.
func (c *cache) image(ctx context.Context, conf Config, l List, programs map[string]string) (Built, error) {
	base, err := c.baseKey(l)
	if err != nil {
		return Built{}, err
	}
	sums := []string{base}
	for _, p := range l.packages() {
		sum, err := hashFile(programs[p])
		if err != nil {
			return Built{}, err
		}
		sums = append(sums, sum)
	}
	l.Labels = conf.labels(l)
	reference := reference(l.Name, conf.Tag)
	id := key(append([]string{"image", fmt.Sprint(l.Labels), reference}, sums...)...)
	if b, ok := c.recorded(named(l.Name, l.arch), id); ok {
		return b, nil
	}
	layers, err := c.layers(ctx, l, base, programs)
	if err != nil {
		return Built{}, err
	}
	if err := l.checkLayers(layers); err != nil {
		return Built{}, err
	}
	img, err := assemble(l, layers)
	if err != nil {
		return Built{}, err
	}
	digest, err := img.Digest()
	if err != nil {
		return Built{}, err
	}
	b := Built{
		Name: l.Name, Architecture: l.arch, Reference: reference, Digest: digest.String(),
		Tar: filepath.Join(c.built, named(l.Name, l.arch)+".tar"),
	}
	for _, layer := range layers {
		info, err := os.Stat(layer)
		if err != nil {
			return Built{}, err
		}
		b.SizeBytes += info.Size()
	}
	if err := c.create(b.Tar, func(w io.Writer) error { return writeArchive(w, b.Reference, img) }); err != nil {
		return Built{}, err
	}
	if b.Packages, err = c.writePackages(l, layers); err != nil {
		return Built{}, err
	}
	if err := c.record(id, b, layers); err != nil {
		return Built{}, err
	}
	c.forget(named(l.Name, l.arch))
	return b, nil
}

// forget removes the layers of an image that it has in no clone and no version any more.
func (c *cache) forget(name string) {
	var layers []string
	records, _ := filepath.Glob(c.path(places, "*", "*", "*.json"))
	for _, file := range records {
		var r record
		if text, err := os.ReadFile(file); err == nil && json.Unmarshal(text, &r) == nil {
			layers = append(layers, r.Layers...)
		}
	}
	old, _ := filepath.Glob(c.path("layers", name+"-*.tar"))
	own := regexp.MustCompile("^" + regexp.QuoteMeta(name) + `-([0-9a-f]{32}|program-.*)\.tar$`) // not of an image whose name begins so
	for _, file := range old {
		if own.MatchString(filepath.Base(file)) && !slices.Contains(layers, file) {
			_ = os.Remove(file)
			_ = os.Remove(packagesOf(file))
		}
	}
}

// record is what is noted of an image that was built.
type record struct {
	// ID names what its tar was made from.
	ID string `json:"id"`
	// Layers are files of the cache.
	Layers []string `json:"layers"`
	Built
}

// record notes what an image's tar was made from.
func (c *cache) record(id string, b Built, layers []string) error {
	text, err := json.Marshal(record{id, layers, b})
	if err != nil {
		return err
	}
	return c.write(filepath.Join(c.built, named(b.Name, b.Architecture)+".json"), text)
}

// recorded finds an image that was made from the same.
func (c *cache) recorded(name, id string) (Built, bool) {
	var r record
	text, err := os.ReadFile(filepath.Join(c.built, name+".json"))
	if err != nil || json.Unmarshal(text, &r) != nil || r.ID != id {
		return Built{}, false
	}
	for _, file := range []string{r.Tar, r.Packages} {
		if _, err := os.Stat(file); err != nil {
			return Built{}, false
		}
	}
	r.Cached = true
	return r.Built, true
}

// baseKey names all that an image depends on, besides its programs.
func (c *cache) baseKey(l List) (string, error) {
	text, err := json.Marshal(l)
	if err != nil {
		return "", err
	}
	made := builder()
	if l.System != nil {
		// It takes minutes, and little else of this package is a part of it.
		if made, err = source("system.go"); err != nil {
			return "", err
		}
	}
	parts := []string{"base", made, l.arch, string(text)}
	if l.base != nil {
		base, err := c.baseKey(*l.base)
		if err != nil {
			return "", err
		}
		parts = append(parts, base)
	}
	if d := l.locked(); d != nil {
		packages, err := c.lock.of(l.Name, *d)
		if err != nil {
			return "", err
		}
		parts = append(parts, string(table(packages)))
	}
	return key(parts...), nil
}

// layers makes the layers of an image, the one that changes least at the bottom.
func (c *cache) layers(ctx context.Context, l List, base string, programs map[string]string) ([]string, error) {
	var layers, above []string
	if l.base != nil {
		key, err := c.baseKey(*l.base)
		if err != nil {
			return nil, err
		}
		below, err := c.layers(ctx, *l.base, key, programs)
		if err != nil {
			return nil, err
		}
		layers, above = below[:1:1], below[1:]
	}
	if l.Debian != nil || len(l.Files) > 0 {
		build := func() (tree, []Package, error) {
			t, err := c.root(ctx, l, layers)
			return t, t.packages(), err
		}
		// What is in a disk is of all packages.
		inside := func(t tree, err error) (tree, []Package, error) {
			if err != nil {
				return nil, nil, err
			}
			packages, err := c.lock.of(l.Name, *l.locked())
			return t, packages, err
		}
		if l.System != nil {
			build = func() (tree, []Package, error) { return inside(c.system(ctx, l)) }
		}
		if l.Disk != nil {
			sum, err := hashFile(programs[l.Disk.Init])
			if err != nil {
				return nil, err
			}
			base = key("disk", base, sum)
			build = func() (tree, []Package, error) { return inside(c.disk(ctx, l, programs[l.Disk.Init])) }
		}
		layer, err := c.layer(named(l.Name, l.arch)+"-"+base, build)
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	layers = append(layers, above...)
	for _, p := range l.Programs {
		content, err := os.ReadFile(programs[p.Package])
		if err != nil {
			return nil, err
		}
		layer := c.path("layers", named(l.Name, l.arch)+"-program-"+path.Base(p.Path)+".tar")
		t := tree{}
		t.add(p.Path, node{Mode: 0o755, Content: content})
		if err := c.create(layer, t.writeTar); err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	return layers, nil
}

// Tools are the Debian packages that building the images of a cluster needs.
func Tools() []string { return slices.Clone(diskTools) }

// ensure installs the tools that a step needs.
func (c *cache) ensure(ctx context.Context, packages ...string) error {
	return debian.Ensure(ctx, c.out, packages...)
}

// repository returns the folder with the project's images: the given one, or the
// one above the working directory.
func repository(root string) (string, error) {
	// It is absolute: apt takes a relative path of its sources for one below /etc/apt.
	start, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(b), "module github.com/podvisor/podvisor\n") {
			return dir, nil
		}
		if root != "" || dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not in the repository of podvisor", start)
		}
	}
}
