package launcher

import (
	"fmt"
	"time"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// Output is what is known of what the guest writes to its serial console.
type Output struct {
	// Since is when the guest was started, or resumed last. Zero: it was not started, or
	// what it writes is not seen, because it has no serial console or that is not logged.
	Since time.Time
	// Written says that it has written something since it was started.
	Written bool
}

// silent adds to a plan that the guest has never written a byte, and that no agent of it
// answers: as far as can be seen it may not have booted. A guest that uses another console
// does the same, so nothing is decided by it.
func (p *Plan) silent(d Desired, a Actual) {
	if a.Domain != Running || d.stops() || a.Output.Since.IsZero() || a.Output.Written || a.Observed.Agent != nil || p.State.NotBooted != nil {
		return
	}
	if wait := a.Output.Since.Add(silentDelay).Sub(a.Now); wait > 0 {
		p.recheck(wait)
		return
	}
	p.State.NotBooted = &vmi.Finding{Reason: protocol.ReasonNothingWritten, Message: fmt.Sprintf(
		"The guest has run for %s, has written nothing to its serial console, and no agent in it answers: "+
			"it has not booted, or it uses another console; Linux uses this one with console=ttyS0", silentDelay)}
}
