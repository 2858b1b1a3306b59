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
	require.ElementsMatch(t, []string{DefaultsPath, ValidationPath, OwnedPath, EvictionPath, UninstallPath}, slices.Collect(maps.Keys(rules)))
	for _, k := range kinds.All() {
		for _, r := range rules[ValidationPath] {
			if slices.Contains(r.Resources, k.Plural) {
				require.ElementsMatch(t, []admissionregistrationv1.OperationType{"CREATE", "UPDATE"}, r.Operations, "a change is validated as a creation is")
				require.Equal(t, []string{k.Group}, r.APIGroups)
				require.Equal(t, []string{k.Version}, r.APIVersions)
			}
		}
	}
	var registered, served []string
	for _, r := range rules[ValidationPath] {
		registered = append(registered, r.Resources...)
	}
	for _, k := range kinds.All() {
		if k.Served() {
			served = append(served, k.Plural)
		}
	}
	require.ElementsMatch(t, served, registered)
	require.NotEmpty(t, rules[DefaultsPath])
	for _, r := range rules[DefaultsPath] {
		require.Subset(t, served, r.Resources)
	}
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
