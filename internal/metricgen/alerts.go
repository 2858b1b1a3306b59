package main

import (
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// rulesFile has the rules of Prometheus.
const rulesFile = "manifests/monitoring/operator/rules.yaml"

// rule is a rule of Prometheus: what it records, or when it raises an alert.
type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

// readRules reads the rules of the file.
func readRules(file string) (out []rule, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var object struct {
		Spec struct{ Groups []struct{ Rules []rule } }
	}
	if err := yaml.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	for _, g := range object.Spec.Groups {
		out = append(out, g.Rules...)
	}
	return out, nil
}

const (
	api      = "virt-controller does what virt-api does: "
	operator = "there is no virt-operator"
	panics   = "no metric counts panics of guests, because its series would outlive the VMI"
)

// elsewhere are the alerts of KubeVirt that are not raised, and why, in the order of their names.
var elsewhere = [][2]string{
	{"LowReadyVirtAPICount", api + "`LowReadyVirtControllersCount`"},
	{"LowReadyVirtOperatorsCount", operator},
	{"LowVirtAPICount", api + "`LowVirtControllersCount`"},
	{"LowVirtOperatorCount", operator},
	{"NoLeadingVirtOperator", operator},
	{"NoReadyVirtAPI", api + "`NoReadyVirtController`"},
	{"NoReadyVirtOperator", operator},
	{"VMNonRecoverableOSPanic", panics},
	{"VirtAPIDown", api + "`VirtControllerDown`"},
	{"VirtApiRESTErrorsBurst", api + "`VirtControllerRESTErrorsBurst`"},
	{"VirtOperatorDown", operator},
	{"VirtOperatorRESTErrorsBurst", operator},
}

// alertText is the part of the page about alerts and recording rules.
func alertText(rules []rule) string {
	var b strings.Builder
	b.WriteString("\n## Alerts\n\nThe rules of `" + rulesFile + "` raise them. Those that begin with `Podvisor` are not of KubeVirt.\n\n" +
		"| alert | severity | after | condition |\n|---|---|---|---|\n")
	for _, r := range rules {
		if r.Alert != "" {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Alert, r.Labels["severity"], r.For, r.Annotations["summary"])
		}
	}
	b.WriteString("\n## Alerts of KubeVirt that are not raised\n\n| alert | why |\n|---|---|\n")
	for _, e := range elsewhere {
		fmt.Fprintf(&b, "| `%s` | %s |\n", e[0], e[1])
	}
	b.WriteString("\n## Recorded series\n\nThe same rules record them. A name without colons is another name for the series above it, which dashboards know.\n\n")
	for _, r := range rules {
		if r.Record != "" {
			fmt.Fprintf(&b, "- `%s`\n", r.Record)
		}
	}
	return b.String()
}
