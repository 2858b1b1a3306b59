package toolchain

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// snapshotModule is the module with the definitions of the kinds of snapshots.
const snapshotModule = "github.com/kubernetes-csi/external-snapshotter/client/v8"

// storage is the program that gives claims their volumes.
func storage(source string) (part, error) {
	dir := filepath.Join(source, "csi")
	version, err := required(dir, "github.com/kubernetes-csi/external-provisioner/v5")
	if err != nil {
		return part{}, err
	}
	return part{
		name: "csi", version: version, dir: dir,
		programs: []program{{output: "csi", pkg: "."}},
		finish:   func(to string) error { return snapshotKinds(dir, filepath.Join(to, "snapshot-kinds.json")) },
	}, nil
}

// snapshotKinds writes the definitions of the kinds of snapshots, as the module dir
// requires them, to the file.
func snapshotKinds(dir, file string) error {
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", snapshotModule)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("find module %s: %w", snapshotModule, err)
	}
	found, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "config/crd/snapshot.*.yaml"))
	if err != nil {
		return err
	}
	slices.Sort(found)
	if len(found) != 3 {
		return fmt.Errorf("module %s has definitions of %d kinds and not of 3", snapshotModule, len(found))
	}
	type object struct {
		Path   string          `json:"path"`
		Object json.RawMessage `json:"object"`
	}
	var all []object
	for _, f := range found {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		data, err := yaml.YAMLToJSON(text)
		if err != nil {
			return fmt.Errorf("read %s: %w", f, err)
		}
		all = append(all, object{"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", data})
	}
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}
