package monitoring

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"

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

// scrapeBlock matches the scrape configuration of the page.
var scrapeBlock = regexp.MustCompile(`(?m)^    - job_name: .*\n(?:^    .*\n)*`)

// ReadScrape returns the scrape configuration of docs/monitoring.md in a checkout. The token is in
// the file token, and the file kubeconfig says where the API server is.
func ReadScrape(root, token, kubeconfig string) (map[string]any, error) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "monitoring.md"))
	if err != nil {
		return nil, err
	}
	var all []map[string]any
	if err := yaml.Unmarshal(scrapeBlock.Find(page), &all); err != nil || len(all) != 1 {
		return nil, fmt.Errorf("docs/monitoring.md has %d scrape configurations: %w", len(all), err)
	}
	authorization, is := all[0]["authorization"].(map[string]any)
	found, some := all[0]["kubernetes_sd_configs"].([]any)
	if !is || !some {
		return nil, fmt.Errorf("the scrape configuration of docs/monitoring.md has no token, or finds nothing in Kubernetes")
	}
	authorization["credentials_file"] = token
	for _, f := range found {
		f.(map[string]any)["kubeconfig_file"] = kubeconfig
	}
	return all[0], nil
}
