package monitoring

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const root = "../.."

func TestTheRulesAndTheScrapeConfigurationAreRead(t *testing.T) {
	t.Parallel()
	rules, err := ReadRules(root)
	require.NoError(t, err)
	require.Greater(t, strings.Count(string(rules), "record: "), 20)
	require.Greater(t, strings.Count(string(rules), "alert: "), 20)
	scrape, err := ReadScrape(root, "my-token", "my-kubeconfig")
	require.NoError(t, err)
	require.Equal(t, map[string]any{"type": "Bearer", "credentials_file": "my-token"}, scrape["authorization"])
	require.Equal(t, "my-kubeconfig", scrape["kubernetes_sd_configs"].([]any)[0].(map[string]any)["kubeconfig_file"])
}

// read reads the objects of a kind in a file of the manifests.
func read[T any](t *testing.T, file, kind string) (out []T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "manifests", file))
	require.NoError(t, err)
	for part := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var is struct{ Kind string }
		require.NoError(t, yaml.Unmarshal(part, &is))
		if is.Kind == kind {
			var o T
			require.NoError(t, yaml.Unmarshal(part, &o))
			out = append(out, o)
		}
	}
	require.NotEmpty(t, out, "%s has no %s", file, kind)
	return out
}

// monitor is what is looked at of a ServiceMonitor.
type monitor struct {
	Spec struct {
		Selector          struct{ MatchLabels map[string]string }
		NamespaceSelector struct{ MatchNames []string }
		Endpoints         []struct {
			Port, Scheme  string
			HonorLabels   bool
			Authorization struct {
				Type        string
				Credentials corev1.SecretKeySelector
			}
			TLSConfig struct{ InsecureSkipVerify bool }
		}
	}
}

func TestTheServiceMonitorAndThePageFindTheComponentsAndReadThemWithTheSecret(t *testing.T) {
	t.Parallel()
	service := read[corev1.Service](t, "monitoring/scrape/service.yaml", "Service")[0]
	secret := read[corev1.Secret](t, "monitoring/scrape/access.yaml", "Secret")[0]
	account := read[corev1.ServiceAccount](t, "monitoring/scrape/access.yaml", "ServiceAccount")[0]
	m := read[monitor](t, "monitoring/operator/servicemonitor.yaml", "ServiceMonitor")[0].Spec
	require.Len(t, m.Endpoints, 1)
	endpoint := m.Endpoints[0]

	for k, v := range m.Selector.MatchLabels {
		require.Equal(t, v, service.Labels[k])
	}
	require.NotEmpty(t, m.Selector.MatchLabels)
	require.Equal(t, []string{service.Namespace}, m.NamespaceSelector.MatchNames)
	require.Len(t, service.Spec.Ports, 1)
	require.Equal(t, service.Spec.Ports[0].Name, endpoint.Port)
	require.Equal(t, secret.Name, endpoint.Authorization.Credentials.Name)
	require.Equal(t, corev1.ServiceAccountTokenKey, endpoint.Authorization.Credentials.Key)
	require.Equal(t, corev1.SecretTypeServiceAccountToken, secret.Type)
	require.Equal(t, account.Name, secret.Annotations[corev1.ServiceAccountNameKey])

	templates := []corev1.PodTemplateSpec{read[appsv1.DaemonSet](t, "virt-handler.yaml", "DaemonSet")[0].Spec.Template,
		read[appsv1.Deployment](t, "virt-controller.yaml", "Deployment")[0].Spec.Template}
	for _, p := range templates {
		require.Equal(t, "true", p.Labels["prometheus.kubevirt.io"])
		var ports []int32
		for _, c := range p.Spec.Containers {
			for _, port := range c.Ports {
				ports = append(ports, port.ContainerPort)
			}
		}
		require.Contains(t, ports, service.Spec.Ports[0].TargetPort.IntVal)
	}
	require.Equal(t, map[string]string{"prometheus.kubevirt.io": "true"}, service.Spec.Selector)

	scrape, err := ReadScrape(root, "token", "kubeconfig")
	require.NoError(t, err)
	require.Equal(t, service.Name, scrape["job_name"], "as the operator names the job")
	require.Equal(t, endpoint.Scheme, scrape["scheme"])
	require.Equal(t, endpoint.HonorLabels, scrape["honor_labels"])
	require.True(t, endpoint.HonorLabels)
	require.Equal(t, endpoint.Authorization.Type, scrape["authorization"].(map[string]any)["type"])
	require.Equal(t, endpoint.TLSConfig.InsecureSkipVerify, scrape["tls_config"].(map[string]any)["insecure_skip_verify"])
}
