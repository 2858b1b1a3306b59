package metrics

import (
	"github.com/podvisor/podvisor/internal/series"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// Observation is what is known of a VMI when metrics are read.
type Observation struct {
	// Instance is the VMI, with defaults applied.
	Instance *vmi.VirtualMachineInstance
	// Stats are what its launcher counted, sanitized.
	Stats protocol.Stats
	// Failed says that its launcher did not answer.
	Failed bool
}

// All are the metrics of VMIs.
func All() []series.Info { return series.Infos(table) }

// Of are the series of a VMI.
func Of(o Observation) []series.Series { return series.Of(table, o, labels(o.Instance)) }
