package metrics

import (
	"maps"
	"slices"
	"strings"

	"github.com/podvisor/podvisor/vmi"
)

const (
	// vmiLabel is before the key of a VMI's label.
	vmiLabel = "kubernetes_vmi_label_"
	// mostLabels is how many labels of a VMI become labels of its series.
	mostLabels = 64
)

// labels are those that all series of the VMI have. Of two labels of the VMI whose keys
// become the same name the first is there.
func labels(v *vmi.VirtualMachineInstance) []Label {
	out := []Label{{"node", v.Status.NodeName}, {"namespace", v.Namespace}, {"name", v.Name}}
	seen := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(v.Labels)) {
		name := vmiLabel + columnName(key)
		if len(seen) == mostLabels {
			break
		}
		if value := v.Labels[key]; value != "" && !seen[name] {
			seen[name] = true
			out = append(out, Label{name, value})
		}
	}
	return out
}

// columnName is the key of a label with the characters that the name of one can have.
func columnName(key string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return '_'
	}, key)
}

// sorted are the labels of a series: those of the VMI, and its own.
func sorted(common []Label, names, values []string) []Label {
	out := slices.Clone(common)
	for i, name := range names {
		out = append(out, Label{name, values[i]})
	}
	out = slices.DeleteFunc(out, func(l Label) bool { return l.Value == "" })
	slices.SortFunc(out, func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
	return out
}
