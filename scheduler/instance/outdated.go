package instance

import (
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// outdated labels a VMI that runs with another launcher than a start would give it, as
// after an upgrade, and takes the label back. A launcher of which no image is written is
// not judged.
func outdated(o Observed) []scheduler.Action {
	in, now := o.VMI.Status.LauncherContainerImageVersion, o.Config.ImageOf(o.VMI)
	if in == "" || now == "" || isUnreadable(o) {
		return nil
	}
	_, labelled := o.VMI.Labels[vmi.OutdatedLauncherLabel]
	switch {
	case in != now && !labelled:
		return []scheduler.Action{scheduler.SetLabel{Key: vmi.OutdatedLauncherLabel}}
	case in == now && labelled:
		return []scheduler.Action{scheduler.RemoveLabel{Key: vmi.OutdatedLauncherLabel}}
	}
	return nil
}
