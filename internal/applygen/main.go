// Command applygen writes package vmi/applyconfiguration: it has controller-gen make the
// apply configurations of package vmi, as client-go's are made, and joins what that writes
// into one package.
//
// controller-gen takes the version of an API from the name of the folder, writes a file
// for each type and a folder for the group, and exports what reads the schema. The program
// corrects the version, writes one file for the types and one for the schema, and leaves
// the rest out. The types of core/v1 that package vmi has are given the apply configurations
// of client-go.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/podvisor/podvisor/vmi"
)

const (
	// source is the package of the kinds. A marker of it says where controller-gen writes.
	source = "vmi"
	// target is the package that is written.
	target  = "vmi/applyconfiguration"
	types   = target + "/zz_generated.types.go"
	schemas = target + "/zz_generated.schema.go"
)

// What controller-gen writes below the target.
var (
	made       = filepath.Join(target, "podvisor", "vmi")
	madeSchema = filepath.Join(target, "internal", "internal.go")
	leftovers  = []string{filepath.Join(target, "podvisor"), filepath.Join(target, "internal"), filepath.Join(target, "utils.go")}
)

func main() {
	gen := flag.String("controller-gen", "hack/tool controller-gen", "the `command` that makes the apply configurations")
	flag.Parse()
	if err := run(strings.Fields(*gen)); err != nil {
		fmt.Fprintln(os.Stderr, "applygen:", err)
		os.Exit(1)
	}
}

// run writes the package anew, in the folder of the module.
func run(controllerGen []string) (err error) {
	for _, f := range []string{types, schemas} {
		if err := os.Remove(f); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	defer func() {
		for _, f := range leftovers {
			err = errors.Join(err, os.RemoveAll(f))
		}
	}()
	foreign, err := externals()
	if err != nil {
		return err
	}
	args := append(controllerGen[1:len(controllerGen):len(controllerGen)], "applyconfiguration:externalApplyConfigurations={"+strings.Join(foreign, ",")+"}", "paths=./"+source)
	if out, err := exec.Command(controllerGen[0], args...).CombinedOutput(); err != nil {
		return fmt.Errorf("make apply configurations: %w\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(made, "*.go"))
	if err != nil {
		return err
	}
	var texts []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		texts = append(texts, string(b))
	}
	joined, err := join(texts)
	if err != nil {
		return err
	}
	if joined, err = withVersion(joined); err != nil {
		return err
	}
	schema, err := os.ReadFile(madeSchema)
	if err != nil {
		return err
	}
	hidden, err := unexported(string(schema))
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(types, []byte(joined), 0o644), os.WriteFile(schemas, []byte(hidden), 0o644))
}

// withVersion gives the constructors the version of the kinds, in place of the name of
// their folder.
func withVersion(text string) (string, error) {
	wrong := strconv.Quote(vmi.GroupName + "/" + filepath.Base(source))
	if !strings.Contains(text, wrong) {
		return "", fmt.Errorf("no constructor has the version %s: controller-gen writes another, which must be checked", wrong)
	}
	return strings.ReplaceAll(text, wrong, strconv.Quote(vmi.GroupVersion.String())), nil
}

// unexported is the file of the schema as one of the package.
func unexported(text string) (string, error) {
	_, body, found := strings.Cut(text, "package internal\n")
	if !found || !strings.Contains(body, "func Parser() ") {
		return "", errors.New("controller-gen writes the schema in another form, which must be checked")
	}
	return head + strings.Replace(body, "func Parser() ", "func "+schemaOf+"() ", 1), nil
}
