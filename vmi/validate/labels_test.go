package validate

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// The policies have the labels for the API server, the validation for programs.
func TestThePoliciesReserveTheSameLabels(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"labels", "metadata"} {
		require.ElementsMatch(t, reserved, reservedBy(t, name), name)
	}
}

// reservedBy are the labels that the policy reserves.
func reservedBy(t *testing.T, name string) []string {
	t.Helper()
	b, err := os.ReadFile("../../manifests/policies/" + name + ".yaml")
	require.NoError(t, err)
	var policy struct {
		Spec struct {
			Variables []struct{ Name, Expression string } `json:"variables"`
		} `json:"spec"`
	}
	first := regexp.MustCompile(`(?m)^---$`).Split(string(b), 2)[0]
	require.NoError(t, yaml.Unmarshal([]byte(first), &policy))
	var labels []string
	for _, v := range policy.Spec.Variables {
		if v.Name == "reserved" {
			for _, m := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(v.Expression, -1) {
				labels = append(labels, m[1])
			}
		}
	}
	return labels
}
