package vm

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/podvisor/podvisor/vmi"
)

// restartRequired are the fields of the template, by their paths in the VM, that differ
// from the one that the VMI was started from and that only the next start changes. Where
// live is true, the VMI takes other processors, memory and placement while it runs. It
// takes link states always.
func restartRequired(started, now *vmi.VirtualMachineInstanceTemplateSpec, live bool) []string {
	a, b := withoutLinks(started), withoutLinks(now)
	for _, t := range []*vmi.VirtualMachineInstanceTemplateSpec{a, b} {
		if live {
			forgetLive(&t.Spec)
		}
	}
	if equality.Semantic.DeepEqual(a.Spec, b.Spec) {
		return nil
	}
	const path = "spec.template.spec"
	var paths []string
	differences(path, fields(a.Spec), fields(b.Spec), &paths)
	if len(paths) == 0 {
		return []string{path}
	}
	return paths
}

// fields is the spec as its fields have it in JSON. Nil: it has no form there.
func fields(s vmi.VirtualMachineInstanceSpec) any {
	raw, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	var tree any
	if json.Unmarshal(raw, &tree) != nil {
		return nil
	}
	return tree
}

// differences adds the paths at which the two trees differ. Lists of the same length are
// compared by their places.
func differences(path string, a, b any, out *[]string) {
	switch before := a.(type) {
	case map[string]any:
		after, ok := b.(map[string]any)
		if !ok {
			break
		}
		keys := maps.Clone(before)
		maps.Copy(keys, after)
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			differences(path+"."+k, before[k], after[k], out)
		}
		return
	case []any:
		after, ok := b.([]any)
		if !ok || len(before) != len(after) {
			break
		}
		for i := range before {
			differences(fmt.Sprintf("%s[%d]", path, i), before[i], after[i], out)
		}
		return
	}
	if !equality.Semantic.DeepEqual(a, b) {
		*out = append(*out, path)
	}
}

// forgetLive drops what a VMI that can migrate takes while it runs.
func forgetLive(s *vmi.VirtualMachineInstanceSpec) {
	s.NodeSelector, s.Affinity, s.Tolerations = nil, nil, nil
	if s.Domain.CPU != nil {
		s.Domain.CPU.Sockets = 0
	}
	if s.Domain.Memory != nil {
		s.Domain.Memory.Guest = nil
	}
}
