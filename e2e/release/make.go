package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/podvisor/podvisor/e2e/chart"
	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/internal/version"
)

// Config says what is released.
type Config struct {
	// Version is as in v1.2.3. Required.
	Version string
	// Registry is where the images will be, with the path before their names, as
	// registry.example/podvisor. Empty: the manifests name them podvisor/NAME, and an
	// overlay says where they are.
	Registry string
	// Root is the folder of the repository. Required.
	Root string
	// To is the folder of the release. What was there is removed. Required.
	To string
	// Changed permits a checkout with changes. No other checkout makes the same release.
	Changed bool
	// Fast compresses the images less and sooner, for a release that is not published.
	Fast bool
	// Cache is the folder for what was built and downloaded. Empty: that of [images.Config].
	Cache string
	// Out gets the progress. Nil: none is written.
	Out io.Writer
}

// shownPrefix is before the names of the images that the overlay in the repository shows.
const shownPrefix = "registry.example/podvisor"

// unnamed is the path of the images' names in manifests that name no registry.
const unnamed = "podvisor"

var versions = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// check says what is wrong with the configuration.
func (c Config) check() error {
	if !versions.MatchString(c.Version) {
		return fmt.Errorf("version %q must be like v1.2.3 or v1.2.3-rc.1", c.Version)
	}
	if c.Registry == "" {
		return nil
	}
	return checkRegistry(c.Registry)
}

// checkRegistry refuses what would be taken for a path at a registry that is not named.
func checkRegistry(registry string) error {
	host, _, _ := strings.Cut(registry, "/")
	if !registries.MatchString(registry) || !strings.ContainsAny(host, ".:") && host != "localhost" {
		return fmt.Errorf("registry %q must be a host, with a path or without, as registry.example/podvisor", registry)
	}
	return nil
}

var registries = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*)*$`)

// Make writes the release. The folder is there whole or not at all.
func Make(ctx context.Context, c Config) error {
	if c.Out == nil {
		c.Out = io.Discard
	}
	if err := c.check(); err != nil {
		return err
	}
	of := images.Version(ctx, c.Root, c.Version)
	switch {
	case of.Commit == "":
		return fmt.Errorf("%s is no checkout of git: a release says what commit it is of", c.Root)
	case of.Dirty && !c.Changed:
		return fmt.Errorf("%s has changes that are not in a commit, or files that git does not know: see git status", c.Root)
	}
	notes, err := readNotes(filepath.Join(c.Root, "CHANGELOG.md"), c.Version)
	if err != nil {
		return err
	}
	var built []images.Built
	for _, arch := range Architectures() {
		some, err := images.Build(ctx, c.images(arch))
		if err != nil {
			return err
		}
		built = append(built, some...)
	}
	to, err := filepath.Abs(c.To)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(to), ".release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := c.write(temp, of, notes, built); err != nil {
		return fmt.Errorf("make release %s: %w", c.Version, err)
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return errors.Join(os.Chmod(temp, 0o755), os.Rename(temp, to))
}

// Architectures are those of the nodes that a release has images for, as in GOARCH.
func Architectures() []string { return images.Architectures(images.Components()[0]) }

func (c Config) images(arch string) images.Config {
	return images.Config{Names: images.Components(), Architecture: arch, Version: c.Version, Root: c.Root, Cache: c.Cache, Out: c.Out}
}

// write writes all files of the release.
func (c Config) write(dir string, of version.Info, notes string, built []images.Built) error {
	released, digests, err := c.writeLayout(filepath.Join(dir, layoutFolder), of, built)
	if err != nil {
		return err
	}
	if err := c.writeManifests(dir, digests); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "NOTES.md"), []byte(notes), 0o644); err != nil {
		return err
	}
	for _, r := range released {
		packages, err := r.built.DebianPackages()
		if err != nil {
			return err
		}
		if err := c.writeBOM(dir, of, r, packages); err != nil {
			return fmt.Errorf("bill of materials of image %s: %w", r.built.Name, err)
		}
		fmt.Fprintf(c.Out, "%-18s %s %s, %d bytes, %d packages of Debian, %d modules of Go\n",
			r.built.Name, r.built.Architecture, r.digest, r.sizeBytes, len(packages), len(r.modules))
	}
	return writeSums(dir)
}

// writeManifests writes podvisor.yaml, which names the images by their digests, what
// overlays of it begin with, and the chart.
func (c Config) writeManifests(dir string, digests map[string]string) error {
	prefix := c.Registry
	if prefix == "" {
		prefix = unnamed
	}
	manifests, reference := filepath.Join(c.Root, "manifests"), func(name string) string { return prefix + "/" + name + "@" + digests[name] }
	overlay, err := install.Overlay(install.Config{Manifests: manifests, Reference: reference})
	defer os.RemoveAll(overlay)
	if err != nil {
		return fmt.Errorf("write the overlay of the manifests: %w", err)
	}
	text, err := render(overlay)
	if err != nil {
		return err
	}
	head := fmt.Sprintf("# Podvisor %s: kubectl apply --server-side -f podvisor.yaml\n", c.Version)
	const base = "# The base for overlays of yours: see overlays/.\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [podvisor.yaml]\n"
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, "podvisor.yaml"), append([]byte(head), text...), 0o644),
		os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(base), 0o644),
		copyFiles(filepath.Join(dir, "overlays"), filepath.Join(manifests, "overlays")),
		copyFiles(filepath.Join(dir, "instancetypes"), filepath.Join(manifests, "instancetypes")),
		copyFiles(filepath.Join(dir, "monitoring"), filepath.Join(manifests, "monitoring")),
		chart.Write(filepath.Join(dir, chart.File(c.Version)), chart.Config{Version: c.Version, Manifests: manifests, Reference: reference}),
	)
	if err != nil {
		return err
	}
	// The overlay for other registries begins with the digests of this release.
	named := filepath.Join(dir, "overlays", "images", "images.yaml")
	images, err := os.ReadFile(named)
	if err != nil {
		return err
	}
	for name, digest := range digests {
		shown := []byte(": " + shownPrefix + "/" + name + ":v1\n")
		if !bytes.Contains(images, shown) {
			return fmt.Errorf("%s does not name the image %s", named, name)
		}
		images = bytes.ReplaceAll(images, shown, []byte(": "+prefix+"/"+name+"@"+digest+"\n"))
	}
	return os.WriteFile(named, images, 0o644)
}

// render is what kubectl kustomize prints.
func render(dir string) ([]byte, error) {
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("render the manifests: %w", err)
	}
	return resources.AsYaml()
}

// copyFiles copies the files of a folder, with the same permissions wherever it is.
func copyFiles(to, from string) error {
	return filepath.WalkDir(from, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), text, 0o644)
	})
}
