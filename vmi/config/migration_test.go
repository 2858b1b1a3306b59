package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/migrationpolicy"
)

func TestTheSettingsOfAMigration(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cluster, policy string
		// want is what differs from the defaults.
		want string
	}{
		"the defaults": {},
		"the cluster's": {
			cluster: "{nodeDrainTaintKey: a/b, parallelMigrationsPerCluster: 0, parallelOutboundMigrationsPerNode: 7, allowAutoConverge: true, bandwidthPerMigration: 1Gi, completionTimeoutPerGiB: 0, progressTimeout: 9, maxDowntimeMs: 40, network: moves}",
			want:    "{nodeDrainTaintKey: a/b, parallelMigrationsPerCluster: 0, parallelOutboundMigrationsPerNode: 7, allowAutoConverge: true, bandwidthPerMigration: 1Gi, completionTimeoutPerGiB: 0, progressTimeout: 9, maxDowntimeMs: 40, network: moves}",
		},
		"the cluster's post-copy disrupts":      {cluster: "{allowPostCopy: true}", want: "{allowPostCopy: true, allowWorkloadDisruption: true}"},
		"unless it says that it does not":       {cluster: "{allowPostCopy: true, allowWorkloadDisruption: false}", want: "{allowPostCopy: true}"},
		"the policy's":                          {policy: "{allowAutoConverge: true, bandwidthPerMigration: 2Mi, completionTimeoutPerGiB: 1, maxDowntimeMs: 30}", want: "{allowAutoConverge: true, bandwidthPerMigration: 2Mi, completionTimeoutPerGiB: 1, maxDowntimeMs: 30}"},
		"the policy's before the cluster's":     {cluster: "{allowAutoConverge: true, completionTimeoutPerGiB: 7}", policy: "{allowAutoConverge: false, completionTimeoutPerGiB: 1}", want: "{completionTimeoutPerGiB: 1}"},
		"one by one":                            {cluster: "{completionTimeoutPerGiB: 7}", policy: "{allowAutoConverge: true}", want: "{allowAutoConverge: true, completionTimeoutPerGiB: 7}"},
		"a policy's post-copy disrupts":         {cluster: "{allowWorkloadDisruption: false}", policy: "{allowPostCopy: true}", want: "{allowPostCopy: true, allowWorkloadDisruption: true}"},
		"and a policy without it does not":      {cluster: "{allowPostCopy: true}", policy: "{allowPostCopy: false}"},
		"but for what the policy itself says":   {policy: "{allowPostCopy: true, allowWorkloadDisruption: false}", want: "{allowPostCopy: true}"},
		"a policy that says nothing of the two": {cluster: "{allowWorkloadDisruption: true}", policy: "{allowAutoConverge: true}", want: "{allowWorkloadDisruption: true, allowAutoConverge: true}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := &vmi.MigrationConfiguration{
				NodeDrainTaintKey: new("kubevirt.io/drain"), ParallelMigrationsPerCluster: new(uint32(5)), ParallelOutboundMigrationsPerNode: new(uint32(2)),
				AllowAutoConverge: new(false), AllowPostCopy: new(false), AllowWorkloadDisruption: new(false),
				BandwidthPerMigration: new(resource.MustParse("0")), CompletionTimeoutPerGiB: new(int64(150)), ProgressTimeout: new(int64(150)), MaxDowntimeMs: new(uint64(900)),
			}
			require.NoError(t, yaml.UnmarshalStrict([]byte(tt.want), want))
			k := kubevirt(vmi.KubeVirtConfiguration{})
			if tt.cluster != "" {
				k.Spec.Configuration.MigrationConfiguration = &vmi.MigrationConfiguration{}
				require.NoError(t, yaml.UnmarshalStrict([]byte(tt.cluster), k.Spec.Configuration.MigrationConfiguration))
			}
			c, faults := config.Resolve(k)
			require.Empty(t, faults)
			var p *migrationpolicy.MigrationPolicy
			if tt.policy != "" {
				p = &migrationpolicy.MigrationPolicy{}
				require.NoError(t, yaml.UnmarshalStrict([]byte(tt.policy), &p.Spec))
			}
			before := k.DeepCopy()
			got := c.Migration(p)
			require.Equal(t, text(t, want), text(t, got))
			*got.AllowAutoConverge = !*got.AllowAutoConverge
			require.Equal(t, before, k, "the settings are a copy")
		})
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	out, err := yaml.Marshal(v)
	require.NoError(t, err)
	return string(out)
}
