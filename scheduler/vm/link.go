package vm

import (
	"github.com/podvisor/podvisor/vmi"
)

// links are the link states in which the template differs from the VMI, by the names of
// the interfaces: a running guest takes them. Of a VMI that is adopted the template counts
// too.
func links(o Observed, v *vmi.VirtualMachineInstance) map[string]vmi.InterfaceState {
	if o.VM.Spec.Template == nil || vmi.Unreadable(v) != nil {
		return nil
	}
	out := map[string]vmi.InterfaceState{}
	wanted := whole(o.VM, &o.VM.Spec, o.Profile, o.Bindings).Spec.Domain.Devices.Interfaces
	for _, now := range v.Spec.Domain.Devices.Interfaces {
		for _, want := range wanted {
			if want.Name == now.Name && want.HasLink() && now.HasLink() && want.Link() != now.Link() {
				out[now.Name] = want.Link()
			}
		}
	}
	return out
}

// withoutLinks is a copy of the template without what a guest takes while it runs: the
// link states of its interfaces.
func withoutLinks(t *vmi.VirtualMachineInstanceTemplateSpec) *vmi.VirtualMachineInstanceTemplateSpec {
	out := t.DeepCopy()
	for i := range out.Spec.Domain.Devices.Interfaces {
		if n := &out.Spec.Domain.Devices.Interfaces[i]; n.HasLink() {
			n.State = ""
		}
	}
	return out
}
