package main

import (
	"errors"
	"flag"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	root     = "vmi"
	crds     = "manifests/crds"
	table    = "docs/fields.md"
	unserved = "vmi/served/zz_generated.unserved.go"
	untyped  = "vmi/served/zz_generated.untyped.go"
	users    = "manifests/rbac/users.yaml"
	judgeBy  = "internal/vmi/schema/zz_generated.schemas.json"
	lists    = "internal/vmi/bounds/zz_generated.lists.go"
	statuses = "vmi/config/live/zz_generated.statuses.go"
	rowsFile = "zz_generated.definitions.go"
)

func main() {
	gen := flag.String("controller-gen", "hack/tool controller-gen", "the `command` that makes schemas of all fields")
	whole := flag.String("whole", "", "write only the schemas of all typed fields, served or not, to this `folder`")
	flag.Parse()
	if err := run(strings.Fields(*gen), *whole); err != nil {
		fmt.Fprintln(os.Stderr, "apigen:", err)
		os.Exit(1)
	}
}

// run writes all files anew, in the folder of the module; or what would be if
// everything was served, if whole is a folder.
func run(controllerGen []string, whole string) error {
	groups, err := findGroups(root)
	if err != nil {
		return err
	}
	m, err := readModel(groups)
	if err != nil {
		return err
	}
	all, err := wholeSchemas(controllerGen, groups)
	if err != nil {
		return err
	}
	if whole != "" {
		m.serveAll()
		_, err := writeServed(m, all, whole)
		return err
	}
	for _, g := range groups {
		if err := writeGo(filepath.Join(g.dir, rowsFile), renderDefinitions(g, all)); err != nil {
			return err
		}
	}
	if err := writeGo(untyped, renderUntyped(m, all)); err != nil {
		return err
	}
	if err := writeGo(lists, renderLists(all)); err != nil {
		return err
	}
	text := renderTable(m, all)
	if err := os.MkdirAll(filepath.Dir(table), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(table, []byte(text), 0o644); err != nil {
		return err
	}
	if err := writeVerbs(users); err != nil {
		return err
	}
	pruned, err := writeServed(m, all, crds)
	if err != nil {
		return err
	}
	rules, err := renderSchemas(servedOf(m, all))
	if err != nil {
		return err
	}
	if err := os.WriteFile(judgeBy, rules, 0o644); err != nil {
		return err
	}
	if err := writeGo(statuses, renderStatuses(digestOfStatuses(servedOf(m, all)))); err != nil {
		return err
	}
	return writeGo(unserved, renderUnserved(pruned))
}

// servedOf are the definitions of the kinds that are served.
func servedOf(m *model, all []*definition) []*definition {
	return slices.DeleteFunc(slices.Clone(all), func(d *definition) bool { return m.types[d.kind()].unserved != "" })
}

// writeGo writes Go code as gofmt formats it.
func writeGo(file string, code []byte) error {
	text, err := format.Source(code)
	if err != nil {
		return fmt.Errorf("format %s: %w", file, err)
	}
	return os.WriteFile(file, text, 0o644)
}

// wholeSchemas has controller-gen make the schemas of all fields of all kinds.
func wholeSchemas(controllerGen []string, groups []group) ([]*definition, error) {
	dir, err := os.MkdirTemp("", "apigen")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	args := append(controllerGen[1:len(controllerGen):len(controllerGen)], "crd:allowDangerousTypes=true", "output:crd:dir="+dir)
	for _, g := range groups {
		args = append(args, "paths=./"+g.dir)
	}
	if out, err := exec.Command(controllerGen[0], args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make schemas: %w\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var all []*definition
	for _, f := range files {
		d, err := readDefinition(f)
		if err != nil {
			return nil, err
		}
		limitLists(d.schema())
		all = append(all, d)
	}
	return all, nil
}

// writeServed writes the schemas of the served kinds to a folder and removes all
// others from it. It returns what is not in them, by kind.
func writeServed(m *model, all []*definition, dir string) (map[string][]gap, error) {
	pruned := map[string][]gap{}
	var faults []error
	for _, d := range all {
		if why := m.types[d.kind()].unserved; why != "" {
			pruned[d.kind()] = []gap{{why: why}}
			if err := os.Remove(filepath.Join(dir, d.file)); err != nil && !errors.Is(err, os.ErrNotExist) {
				faults = append(faults, err)
			}
			continue
		}
		p := pruner{model: m}
		p.definition(d)
		faults = append(faults, p.faults...)
		pruned[d.kind()] = p.pruned
	}
	served := servedOf(m, all)
	annotateStatuses(served, digestOfStatuses(served))
	for _, d := range served {
		text, err := d.yaml()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, d.file), text, 0o644)
		}
		if err != nil {
			faults = append(faults, err)
		}
	}
	return pruned, errors.Join(faults...)
}
