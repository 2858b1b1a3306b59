package config

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/migrationpolicy"
)

// Migration are the settings of the migrations of a VMI with this policy: all that are
// served are set. What the policy leaves open is as the cluster has it, and what that
// leaves open is the default. p is nil if the VMI has none.
func (c Config) Migration(p *migrationpolicy.MigrationPolicy) *vmi.MigrationConfiguration {
	m := vmi.MigrationConfiguration{
		NodeDrainTaintKey:                 new(vmi.DrainTaintKey),
		ParallelMigrationsPerCluster:      new(uint32(5)),
		ParallelOutboundMigrationsPerNode: new(uint32(2)),
		AllowAutoConverge:                 new(false),
		AllowPostCopy:                     new(false),
		AllowWorkloadDisruption:           new(false),
		BandwidthPerMigration:             resource.NewQuantity(0, resource.BinarySI),
		CompletionTimeoutPerGiB:           new(int64(150)),
		ProgressTimeout:                   new(int64(150)),
		MaxDowntimeMs:                     new(uint64(900)),
	}
	if in := c.Migrations; in != nil {
		set(&m.NodeDrainTaintKey, in.NodeDrainTaintKey)
		set(&m.ParallelMigrationsPerCluster, in.ParallelMigrationsPerCluster)
		set(&m.ParallelOutboundMigrationsPerNode, in.ParallelOutboundMigrationsPerNode)
		set(&m.AllowAutoConverge, in.AllowAutoConverge)
		set(&m.AllowPostCopy, in.AllowPostCopy)
		set(&m.AllowWorkloadDisruption, in.AllowPostCopy, in.AllowWorkloadDisruption)
		set(&m.BandwidthPerMigration, in.BandwidthPerMigration)
		set(&m.CompletionTimeoutPerGiB, in.CompletionTimeoutPerGiB)
		set(&m.ProgressTimeout, in.ProgressTimeout)
		set(&m.MaxDowntimeMs, in.MaxDowntimeMs)
		set(&m.Network, in.Network)
	}
	if p != nil {
		in := &p.Spec
		set(&m.AllowAutoConverge, in.AllowAutoConverge)
		set(&m.AllowPostCopy, in.AllowPostCopy)
		set(&m.AllowWorkloadDisruption, in.AllowPostCopy, in.AllowWorkloadDisruption)
		set(&m.BandwidthPerMigration, in.BandwidthPerMigration)
		set(&m.CompletionTimeoutPerGiB, in.CompletionTimeoutPerGiB)
		set(&m.MaxDowntimeMs, in.MaxDowntimeMs)
	}
	return m.DeepCopy()
}

// set makes it the last of the values that is set, if one is.
func set[T any](to **T, values ...*T) {
	for _, v := range values {
		if v != nil {
			*to = v
		}
	}
}
