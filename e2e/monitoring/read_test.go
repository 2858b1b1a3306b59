package monitoring

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheRulesAndTheScrapeConfigurationAreRead(t *testing.T) {
	t.Parallel()
	rules, err := ReadRules("../..")
	require.NoError(t, err)
	require.Greater(t, strings.Count(string(rules), "record: "), 20)
	require.Greater(t, strings.Count(string(rules), "alert: "), 20)
	scrape, err := ReadScrape("../..", "my-token", "my-kubeconfig")
	require.NoError(t, err)
	require.Equal(t, "kubevirt-prometheus-metrics", scrape["job_name"])
	require.Equal(t, map[string]any{"type": "Bearer", "credentials_file": "my-token"}, scrape["authorization"])
	require.Contains(t, scrape["kubernetes_sd_configs"].([]any)[0], "kubeconfig_file")
}
