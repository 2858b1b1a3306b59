package instancetype

import "github.com/podvisor/podvisor/vmi"

// Complete returns a copy of the VM with what a preference decides for all of its starts, where
// the VM leaves it open: its architecture, its machine type, and the storage class of its
// dataVolumeTemplates. The preference may be nil.
func Complete(v *vmi.VirtualMachine, p *VirtualMachinePreferenceSpec) *vmi.VirtualMachine {
	v = v.DeepCopy()
	if p == nil {
		return v
	}
	if v.Spec.Template != nil {
		s := &v.Spec.Template.Spec
		if p.PreferredArchitecture != nil {
			open(&s.Architecture, *p.PreferredArchitecture)
		}
		if t := p.machineType(); t != "" && (s.Domain.Machine == nil || s.Domain.Machine.Type == "") {
			s.Domain.Machine = &vmi.Machine{Type: t}
		}
	}
	if p.Volumes == nil || p.Volumes.PreferredStorageClassName == "" {
		return v
	}
	class := &p.Volumes.PreferredStorageClassName
	for i := range v.Spec.DataVolumeTemplates {
		if d := v.Spec.DataVolumeTemplates[i].Spec.PVC; d != nil {
			absent(&d.StorageClassName, class)
		}
		if d := v.Spec.DataVolumeTemplates[i].Spec.Storage; d != nil {
			absent(&d.StorageClassName, class)
		}
	}
	return v
}
