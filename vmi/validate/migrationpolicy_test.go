package validate_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi/migrationpolicy"
	"github.com/podvisor/podvisor/vmi/validate"
)

func TestAMigrationPolicyIsJudged(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spec string
		want []string
	}{
		"all VMIs":              {`{selectors: {}}`, nil},
		"every field":           {`{selectors: {namespaceSelector: {a: b}, virtualMachineInstanceSelector: {example.com/c: ""}}, bandwidthPerMigration: 2000Mi, completionTimeoutPerGiB: 0, maxDowntimeMs: 2000000, allowAutoConverge: false, allowPostCopy: true, allowWorkloadDisruption: false}`, nil},
		"no bandwidth limit":    {`{selectors: {}, bandwidthPerMigration: 0}`, nil},
		"no selectors":          {`{}`, []string{"spec.selectors: Required value: say which VMIs the policy is for: {} is for all"}},
		"a negative bandwidth":  {`{selectors: {}, bandwidthPerMigration: -1Mi}`, []string{`spec.bandwidthPerMigration: Invalid value: "-1Mi": must not be negative`}},
		"a negative time":       {`{selectors: {}, completionTimeoutPerGiB: -1}`, []string{"spec.completionTimeoutPerGiB: Invalid value: -1: must not be negative"}},
		"no downtime":           {`{selectors: {}, maxDowntimeMs: 0}`, []string{"spec.maxDowntimeMs: Invalid value: 0: must be from 1 to 2000000"}},
		"too long a downtime":   {`{selectors: {}, maxDowntimeMs: 2000001}`, []string{"spec.maxDowntimeMs: Invalid value: 2000001: must be from 1 to 2000000"}},
		"labels that none have": {`{selectors: {namespaceSelector: {a/b/c: d}, virtualMachineInstanceSelector: {e: "f g"}}}`, []string{"spec.selectors.namespaceSelector[a/b/c]: Invalid value", "spec.selectors.virtualMachineInstanceSelector[e]: Invalid value"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p migrationpolicy.MigrationPolicy
			require.NoError(t, yaml.UnmarshalStrict([]byte(tt.spec), &p.Spec))
			got := validate.MigrationPolicy(&p)
			require.Len(t, got, len(tt.want), "%v", got)
			for i, want := range tt.want {
				require.Contains(t, got[i].Error(), want)
			}
		})
	}
}
