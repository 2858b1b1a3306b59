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
		config string
		want   protocol.MigrationSettings
	}{
		"nothing is set":              {"{}", protocol.MigrationSettings{}},
		"no limit of the bandwidth":   {`{bandwidthPerMigration: "0"}`, protocol.MigrationSettings{}},
		"whole MiB":                   {"{bandwidthPerMigration: 65Mi}", protocol.MigrationSettings{MiBPerSecond: 65}},
		"a part of a MiB is left out": {"{bandwidthPerMigration: 3M}", protocol.MigrationSettings{MiBPerSecond: 2}},
		"more than an int32":          {"{bandwidthPerMigration: 4Ei}", protocol.MigrationSettings{MiBPerSecond: 2147483647}},
		"and never all":               {"{bandwidthPerMigration: 1Ki}", protocol.MigrationSettings{MiBPerSecond: 1}},
		"also of a thousandth":        {"{bandwidthPerMigration: 1m}", protocol.MigrationSettings{MiBPerSecond: 1}},
		"times":                       {"{completionTimeoutPerGiB: 3, progressTimeout: 4, maxDowntimeMs: 5}", protocol.MigrationSettings{SecondsPerGB: 3, ProgressSeconds: 4, DowntimeMillis: 5}},
		"auto-converge":               {"{allowAutoConverge: true}", protocol.MigrationSettings{AutoConverge: true}},
		"a pause":                     {"{allowWorkloadDisruption: true}", protocol.MigrationSettings{Disruption: true}},
		"post-copy":                   {"{allowPostCopy: true, allowWorkloadDisruption: true}", protocol.MigrationSettings{PostCopy: true, Disruption: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c vmi.MigrationConfiguration
			require.NoError(t, yaml.UnmarshalStrict([]byte(tt.config), &c))
			require.Equal(t, tt.want, protocol.MigrationSettingsOf(&c))
		})
	}
	require.Equal(t, protocol.MigrationSettings{}, protocol.MigrationSettingsOf(nil))
}
