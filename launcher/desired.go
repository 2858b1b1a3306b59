package launcher

import (
	"time"

	"github.com/podvisor/podvisor/launcher/protocol"
)

// Desired is what is desired of the domain. The zero value: nothing yet.
type Desired struct {
	// Generation is that of the protocol.Desired in force.
	Generation int64
	// Run says that there is a protocol.Desired in force: the domain shall run,
	// unless StopBy is set.
	Run bool
	// Target says that the guest comes from another launcher: the domain is not
	// created here.
	Target bool
	// StopBy is when the guest has to be off. Zero: its end is not asked for.
	StopBy time.Time
	// Terminated says that the end was asked for from outside, as by an eviction of the
	// pod, and by no protocol.Desired.
	Terminated bool
	// Devices are those that the domain shall have.
	Devices []Device
	// Call is the call about pausing that is in force: a pause until an unpause
	// follows, an unpause until the guest runs. Empty: none.
	Call protocol.Call
}

// stops says that the end of the guest is asked for.
func (d Desired) stops() bool { return !d.StopBy.IsZero() }
