package protocol

import (
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// connections is how many connections send the memory of a guest at the same time.
const connections = 8

// MigrationSettingsOf are how a VMI moves with the configuration, whose fields that are not
// set limit and permit nothing. Nil: none is set. A bandwidth is in whole MiB per second, and never below one.
// A VMI whose processors are limited, or are its alone, has one connection for its memory:
// each costs processor time. So has one that may go to post-copy, which QEMU does with one
// only, and one whose bandwidth is limited: QEMU 10 sends up to 512 KiB over each connection
// in a tenth of a second, whatever the limit is.
func MigrationSettingsOf(c *vmi.MigrationConfiguration, v *vmi.VirtualMachineInstance) MigrationSettings {
	if c == nil {
		c = &vmi.MigrationConfiguration{}
	}
	s := MigrationSettings{
		AutoConverge:    of(c.AllowAutoConverge),
		PostCopy:        of(c.AllowPostCopy),
		Disruption:      of(c.AllowWorkloadDisruption),
		SecondsPerGB:    of(c.CompletionTimeoutPerGiB),
		ProgressSeconds: of(c.ProgressTimeout),
		DowntimeMillis:  int64(min(of(c.MaxDowntimeMs), math.MaxInt32)),
	}
	if b := c.BandwidthPerMigration; b != nil && b.Sign() > 0 {
		s.MiBPerSecond = int(min(max(1, b.Value()>>20), math.MaxInt32))
	}
	d := v.Spec.Domain
	dedicated := d.CPU != nil && d.CPU.DedicatedCPUPlacement
	if _, limited := d.Resources.Limits[corev1.ResourceCPU]; !limited && !dedicated && !s.PostCopy && s.MiBPerSecond == 0 {
		s.Connections = connections
	}
	return s
}

// of is the value, or its zero.
func of[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}
