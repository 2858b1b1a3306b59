package admission

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/internal/certificate"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi/kinds"
)

// registeredRules are the rules of the webhooks of the manifests by their paths.
func registeredRules(t *testing.T) map[string][]admissionregistrationv1.RuleWithOperations {
	t.Helper()
	data, err := os.ReadFile("../../manifests/webhooks.yaml")
	require.NoError(t, err)
	out := map[string][]admissionregistrationv1.RuleWithOperations{}
	for _, doc := range bytes.Split(data, []byte("\n---\n")) {
		// The webhooks of both kinds have these fields.
		var c admissionregistrationv1.ValidatingWebhookConfiguration
		require.NoError(t, yaml.Unmarshal(doc, &c))
		for _, w := range c.Webhooks {
			require.Nil(t, w.ClientConfig.Service.Path, "virt-certificates writes it")
			out[certificate.Below(w.Name)] = append(out[certificate.Below(w.Name)], w.Rules...)
		}
	}
	return out
}

func TestTheWebhooksAreRegisteredForEveryServedKind(t *testing.T) {
	t.Parallel()
	rules := registeredRules(t)
	require.ElementsMatch(t, []string{DefaultsPath, ValidationPath, OwnedPath, MigrationPath, EvictionPath, UninstallPath}, slices.Collect(maps.Keys(rules)))
	// Where each operation on a kind is validated. What is completed is validated with it when
	// it is created.
	validated := map[string][]string{}
	for path, operations := range map[string][]admissionregistrationv1.OperationType{DefaultsPath: {"CREATE"}, ValidationPath: {"CREATE", "UPDATE"}} {
		for _, r := range rules[path] {
			for _, o := range operations {
				if slices.Contains(r.Operations, o) {
					for _, resource := range r.Resources {
						key := resource + "." + r.APIGroups[0] + "/" + r.APIVersions[0]
						validated[key] = append(validated[key], string(o))
					}
				}
			}
		}
	}
	served := map[string][]string{}
	var plurals []string
	for _, k := range kinds.All() {
		if k.Served() {
			served[k.Plural+"."+k.Group+"/"+k.Version], plurals = []string{"CREATE", "UPDATE"}, append(plurals, k.Plural)
		}
	}
	for _, operations := range validated {
		slices.Sort(operations)
	}
	require.Equal(t, served, validated)
	completed := map[admissionregistrationv1.OperationType][]string{}
	for _, r := range rules[DefaultsPath] {
		require.Subset(t, plurals, r.Resources)
		for _, o := range r.Operations {
			completed[o] = append(completed[o], r.Resources...)
		}
	}
	require.NotEmpty(t, completed[admissionregistrationv1.Create])
	require.Equal(t, completed[admissionregistrationv1.Create], completed[admissionregistrationv1.Update])
}

func TestTheDefinitionsOfWhatRunsGuestsAreKeptWithIt(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../manifests/webhooks.yaml")
	require.NoError(t, err)
	_, condition, found := strings.Cut(string(data), "name: is-of-podvisor")
	require.True(t, found)
	condition, _, _ = strings.Cut(condition, "sideEffects")
	for _, d := range scheduler.GuestKinds() {
		require.Contains(t, condition, `"`+d.Resource().GroupResource().String()+`"`)
	}
}

func TestEveryKindThatMakesVMIsIsAsked(t *testing.T) {
	t.Parallel()
	for _, k := range kinds.All() {
		_, ok := makerOf(metav1.OwnerReference{APIVersion: k.GroupVersion().String(), Kind: k.Kind})
		require.Equal(t, k.Template != nil, ok, k.Kind)
	}
	_, ok := makerOf(metav1.OwnerReference{APIVersion: "example.io/v1", Kind: "VirtualMachine"})
	require.False(t, ok)
}
