package effect

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/validate"
)

// domainsOf are the domains of a VMI with KVM and with emulation, as far as it has
// them.
func domainsOf(v *vmi.VirtualMachineInstance) (map[string]string, error) {
	if l := validate.Spec(field.NewPath("spec"), &v.Spec, validate.Limits{Features: validate.Features{SEV: true}}); len(l) > 0 {
		return nil, l.ToAggregate()
	}
	v = defaults.Instance(v, defaults.Profile{})
	plan, err := planOf(v)
	if err != nil {
		return nil, err
	}
	_, disks, err := disksOf(v, nil)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, kvm := range []bool{true, false} {
		d, err := domain.Build(v, domain.Host{KVM: kvm, AllowEmulation: true, ConsoleLog: "/private/console", Disks: disks, Interfaces: plan.Attachments})
		switch {
		case errors.Is(err, vmi.ErrInvalid):
			continue
		case err != nil:
			return nil, err
		}
		text, err := d.Marshal()
		if err != nil {
			return nil, err
		}
		out[fmt.Sprintf("kvm-%t", kvm)] = text
	}
	return out, nil
}

// sweep does something with the VMIs of testdata, and with each of them with each served
// leaf of the domain at each of its other values.
func sweep(t *testing.T, do func(name string, tree map[string]any)) {
	trees := bases(t)
	names := slices.Sorted(maps.Keys(trees))
	for _, name := range names {
		do(name, trees[name])
	}
	for _, l := range leaves() {
		if !strings.HasPrefix(l.path, "spec.domain.") {
			continue
		}
		for _, name := range names {
			tree := trees[name]
			for _, p := range places(tree, l.path) {
				for _, value := range append(l.others(p.get(tree)), l.odd()...) {
					do(fmt.Sprintf("%s %v = %v", name, p, value), l.changed(tree, p, value))
				}
			}
		}
	}
}

// odd are values of words that no program writes.
func (l leaf) odd() []any {
	if l.typ.Kind() != reflect.String {
		return nil
	}
	return []any{"<é & ,'\">", " ", "a\nb"}
}

// accepted does something with the specs of the conformance data that KubeVirt accepts, if
// they are here.
func accepted(t *testing.T, do func(name string, tree map[string]any)) {
	for _, folder := range []string{"accepted", "vmi", "defaulted", "examples"} {
		files, err := filepath.Glob(filepath.Join("../../../shared/conformance", folder, "*.yaml"))
		require.NoError(t, err)
		for _, f := range files {
			data, err := os.ReadFile(f)
			require.NoError(t, err)
			var tree map[string]any
			require.NoError(t, yaml.Unmarshal(data, &tree))
			if object, ok := tree["object"].(map[string]any); ok {
				tree = object
			}
			if template, ok := (place{"spec", "template"}).get(tree).(map[string]any); ok {
				tree = template
			}
			tree["metadata"] = map[string]any{"name": "vm", "namespace": "default", "uid": "11111111-1111-4111-8111-111111111111"}
			do(folder+"/"+filepath.Base(f), tree)
		}
	}
}

func TestEveryDomainIsWhatLibvirtsSchemaAllows(t *testing.T) {
	xmllint := testenv.Program(t, "xmllint")
	schema := testenv.File(t, "/usr/share/libvirt/schemas/domain.rng")
	dir, names, seen, vmis := t.TempDir(), map[string]string{}, map[string]bool{}, 0
	add := func(name string, tree map[string]any) {
		vmis++
		data, err := json.Marshal(tree)
		require.NoError(t, err)
		var v vmi.VirtualMachineInstance
		if json.Unmarshal(data, &v) != nil {
			return // a field of another type than ours is refused before all this
		}
		domains, err := domainsOf(&v)
		if err != nil {
			return
		}
		for how, text := range domains {
			if seen[text] {
				continue
			}
			seen[text] = true
			file := filepath.Join(dir, fmt.Sprintf("%04d.xml", len(names)))
			names[file] = name + " " + how
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		}
	}
	sweep(t, add)
	accepted(t, add)
	require.Greater(t, len(names), 200, "the sweep makes domains")
	out, err := exec.Command(xmllint, append([]string{"--noout", "--relaxng", schema}, slices.Sorted(maps.Keys(names))...)...).CombinedOutput()
	t.Logf("%d VMIs, %d different domains", vmis, len(names))
	if err == nil {
		return
	}
	for _, line := range strings.Split(string(out), "\n") {
		if file, ok := strings.CutSuffix(line, " fails to validate"); ok {
			t.Errorf("%s is not what the schema allows", names[file])
		}
	}
	t.Fatalf("%.4000s", strings.ReplaceAll(string(out), dir+"/", ""))
}
