package metrics

import (
	"maps"
	"slices"
	"strings"

	"github.com/podvisor/podvisor/internal/series"
	"github.com/podvisor/podvisor/vmi"
)

const (
	// vmiLabel is before the key of a VMI's label.
	vmiLabel = "kubernetes_vmi_label_"
	// mostLabels is how many labels of a VMI become labels of its series.
	mostLabels = 64
)

// identity are the labels that name the VMI and its node.
func identity(v *vmi.VirtualMachineInstance) []series.Label {
	return append(named(v), series.Label{Name: "node", Value: v.Status.NodeName})
}

// named are the labels that name the VMI.
func named(v *vmi.VirtualMachineInstance) []series.Label {
	return []series.Label{{Name: "namespace", Value: v.Namespace}, {Name: "name", Value: v.Name}}
}

// labels are identity and one for each label of the VMI. Of two labels of the VMI whose
// keys become the same name the first is there.
func labels(v *vmi.VirtualMachineInstance) []series.Label {
	out := identity(v)
	seen := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(v.Labels)) {
		name := vmiLabel + columnName(key)
		if len(seen) == mostLabels {
			break
		}
		if value := v.Labels[key]; value != "" && !seen[name] {
			seen[name] = true
			out = append(out, series.Label{Name: name, Value: value})
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
