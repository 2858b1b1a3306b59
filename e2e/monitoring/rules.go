package monitoring

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// ReadRules returns the rules of manifests/monitoring in a checkout, as a file of rules for
// Prometheus.
func ReadRules(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, "manifests", "monitoring", "operator", "rules.yaml"))
	if err != nil {
		return nil, err
	}
	var object struct {
		Spec any `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("read the rules: %w", err)
	}
	return yaml.Marshal(object.Spec)
}
