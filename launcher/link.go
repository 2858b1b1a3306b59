package launcher

import (
	"time"

	"github.com/podvisor/podvisor/vmi"
)

// switchLink adds to a plan the interface whose link has another state than it shall
// have, one at a time. A guest that is to power off keeps what it has.
func (p *Plan) switchLink(d Desired, a Actual) {
	if !a.Domain.exists() || d.stops() || a.Switching {
		return
	}
	differ := Compare(d.Devices, a.Devices).Switch
	if len(differ) == 0 {
		return
	}
	if wait := a.SwitchAt.Sub(a.Now); wait > 0 {
		p.recheck(wait)
		return
	}
	p.Actions = append(p.Actions, SwitchLink{Device: differ[0]})
}

// switchFails finds an interface whose link was not switched.
func switchFails(d Desired, a Actual) (*vmi.Finding, time.Duration) {
	if a.SwitchFault == nil || !a.Domain.exists() || len(Compare(d.Devices, a.Devices).Switch) == 0 {
		return nil, 0
	}
	return &vmi.Finding{Reason: ReasonSwitchFailed, Message: a.SwitchFault.Error()}, 0
}
