package launcher

import (
	"time"

	"github.com/podvisor/podvisor/vmi"
)

// resize adds to a plan the disk that is smaller than it shall be, one at a time. A
// guest that is to power off keeps what it has.
func (p *Plan) resize(d Desired, a Actual) {
	if !a.Domain.exists() || d.stops() || a.Resizing {
		return
	}
	smaller := Compare(d.Devices, a.Devices).Resize
	if len(smaller) == 0 {
		return
	}
	if wait := a.ResizeAt.Sub(a.Now); wait > 0 {
		p.recheck(wait)
		return
	}
	p.Actions = append(p.Actions, Resize{Device: smaller[0]})
}

// resizeFails finds a disk that did not grow.
func resizeFails(d Desired, a Actual) (*vmi.Finding, time.Duration) {
	if a.ResizeFault == nil || !a.Domain.exists() || len(Compare(d.Devices, a.Devices).Resize) == 0 {
		return nil, 0
	}
	return &vmi.Finding{Reason: ReasonResizeFailed, Message: a.ResizeFault.Error()}, 0
}
