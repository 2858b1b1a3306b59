package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

func TestTheSettingsOfAMigrationFollowFromItsConfiguration(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config, spec string
		want         protocol.MigrationSettings
	}{
		"nothing is set":                  {"{}", "{}", protocol.MigrationSettings{Connections: 8}},
		"no limit of the bandwidth":       {`{bandwidthPerMigration: "0"}`, "{}", protocol.MigrationSettings{Connections: 8}},
		"whole MiB":                       {"{bandwidthPerMigration: 65Mi}", "{}", protocol.MigrationSettings{MiBPerSecond: 65}},
		"a part of a MiB is left out":     {"{bandwidthPerMigration: 3M}", "{}", protocol.MigrationSettings{MiBPerSecond: 2}},
		"more than an int32":              {"{bandwidthPerMigration: 4Ei}", "{}", protocol.MigrationSettings{MiBPerSecond: 2147483647}},
		"and never all":                   {"{bandwidthPerMigration: 1Ki}", "{}", protocol.MigrationSettings{MiBPerSecond: 1}},
		"also of a thousandth":            {"{bandwidthPerMigration: 1m}", "{}", protocol.MigrationSettings{MiBPerSecond: 1}},
		"times":                           {"{completionTimeoutPerGiB: 3, progressTimeout: 4, maxDowntimeMs: 5}", "{}", protocol.MigrationSettings{SecondsPerGB: 3, ProgressSeconds: 4, DowntimeMillis: 5, Connections: 8}},
		"auto-converge":                   {"{allowAutoConverge: true}", "{}", protocol.MigrationSettings{AutoConverge: true, Connections: 8}},
		"a pause":                         {"{allowWorkloadDisruption: true}", "{}", protocol.MigrationSettings{Disruption: true, Connections: 8}},
		"post-copy has one connection":    {"{allowPostCopy: true, allowWorkloadDisruption: true}", "{}", protocol.MigrationSettings{PostCopy: true, Disruption: true}},
		"a limited processor too":         {"{}", "{domain: {resources: {limits: {cpu: 1}}}}", protocol.MigrationSettings{}},
		"and a dedicated one":             {"{}", "{domain: {cpu: {dedicatedCpuPlacement: true}}}", protocol.MigrationSettings{}},
		"a limit of the memory is none":   {"{}", "{domain: {resources: {limits: {memory: 1Gi}}}}", protocol.MigrationSettings{Connections: 8}},
		"a share of the processor is not": {"{}", "{domain: {resources: {requests: {cpu: 1}}}}", protocol.MigrationSettings{Connections: 8}},
		"a processor without a placement": {"{}", "{domain: {cpu: {cores: 2}}}", protocol.MigrationSettings{Connections: 8}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c vmi.MigrationConfiguration
			var v vmi.VirtualMachineInstance
			require.NoError(t, yaml.UnmarshalStrict([]byte(tt.config), &c))
			require.NoError(t, yaml.UnmarshalStrict([]byte(tt.spec), &v.Spec))
			require.Equal(t, tt.want, protocol.MigrationSettingsOf(&c, &v))
		})
	}
	require.Equal(t, protocol.MigrationSettings{Connections: 8}, protocol.MigrationSettingsOf(nil, &vmi.VirtualMachineInstance{}))
}
