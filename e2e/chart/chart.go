package chart

import (
	"archive/tar"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"text/template"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/podvisor/podvisor/e2e/install"
)

// Name is the name of the chart.
const Name = "podvisor"

// Config says of what a chart is made.
type Config struct {
	// Version of Podvisor, as v1.2.3. Required.
	Version string
	// Manifests is the folder of the manifests. Required.
	Manifests string
	// Reference names the image of a component, with its tag or digest. Required.
	Reference func(component string) string
}

//go:embed files/Chart.yaml files/values.schema.json files/templates/_helpers.tpl files/templates/NOTES.txt files/templates/uninstall.yaml
var static embed.FS

// File is the name of the archive of the chart of a version, as "helm package" names it.
func File(version string) string { return Name + "-" + number(version) + ".tgz" }

// number is the version as Helm has it.
func number(version string) string { return strings.TrimPrefix(version, "v") }

// Write writes the archive of the chart, which Helm installs as it is.
func Write(file string, c Config) error {
	files, err := c.files()
	if err != nil {
		return fmt.Errorf("make the chart: %w", err)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(pack(f, files), f.Close())
}

// files are those of the chart, by their paths in it.
func (c Config) files() (map[string]string, error) {
	objects, err := c.templates()
	if err != nil {
		return nil, err
	}
	out := map[string]string{"values.yaml": objects.values}
	err = fs.WalkDir(static, "files", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := static.ReadFile(name)
		out[strings.TrimPrefix(name, "files/")] = string(text)
		return err
	})
	if err != nil {
		return nil, err
	}
	out["templates/definitions.yaml"], out["templates/components.yaml"] = objects.definitions, objects.components
	var about strings.Builder
	t, err := template.New("Chart.yaml").Parse(out["Chart.yaml"])
	if err == nil {
		err = t.Execute(&about, map[string]string{"Name": Name, "Number": number(c.Version), "Version": c.Version})
	}
	out["Chart.yaml"] = about.String()
	return out, err
}

// pack writes an archive that depends on the files alone.
func pack(to io.Writer, files map[string]string) error {
	zipped, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(zipped)
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		err := archive.WriteHeader(&tar.Header{Name: path.Join(Name, name), Size: int64(len(files[name])), Mode: 0o644, Format: tar.FormatUSTAR})
		if err == nil {
			_, err = io.WriteString(archive, files[name])
		}
		if err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
	}
	return errors.Join(archive.Close(), zipped.Close())
}

// render renders the manifests for a namespace, or for their own, with what the switches add
// and leave out, and with a token in the place of each image.
func (c Config) render(namespace string, on ...toggle) (_ []*resource.Resource, err error) {
	overlay := install.Config{
		Manifests: c.Manifests, Into: namespace,
		Reference: func(component string) string { return token("images." + camel(component)) },
	}
	for _, t := range on {
		if t.component != "" {
			overlay.Components = append(overlay.Components, t.component)
		}
		if t.resources != "" && !slices.Contains(overlay.Resources, t.resources) {
			overlay.Resources = append(overlay.Resources, t.resources)
		}
	}
	dir, err := install.Overlay(overlay)
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err != nil {
		return nil, err
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("render the manifests: %w", err)
	}
	return resources.Resources(), nil
}

// camel is the name of the values of a component: virtHandler for virt-handler.
func camel(component string) string {
	words := strings.Split(component, "-")
	for i, w := range words[1:] {
		words[i+1] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}
