package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/podvisor/podvisor/vmi/kinds"
)

const (
	manifests     = "manifests"
	kustomization = "kustomization.yaml"
)

func main() {
	if err := run(manifests); err != nil {
		fmt.Fprintln(os.Stderr, "kindgen:", err)
		os.Exit(1)
	}
}

// run writes the manifests in the folder anew.
func run(dir string) error {
	return filepath.WalkDir(dir, func(file string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".yaml" || filepath.Base(filepath.Dir(file)) == "crds" {
			return err
		}
		before, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		after, err := render(name, string(before), kinds.All())
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if after == string(before) {
			return nil
		}
		return os.WriteFile(file, []byte(after), 0o644)
	})
}

// render is the text of a manifest for the kinds. The name is its path in the folder.
func render(name, text string, all []kinds.Kind) (string, error) {
	lines := strings.Split(text, "\n")
	found := families(lines)
	for _, f := range found {
		write := f.expressions
		if _, ok := flow(f.items[0].text, "resources"); ok {
			write = f.rules
		}
		if err := write(all); err != nil {
			return "", err
		}
	}
	text = replaced(lines, found)
	if name == kustomization {
		return installed(text, all), nil
	}
	return text, nil
}
