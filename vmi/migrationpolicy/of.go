package migrationpolicy

import (
	"cmp"
	"slices"
)

// Of returns the policy of a VMI with these labels in a namespace with those, or nil if
// none selects it. Of several it is the one that selects by the most labels; of these the
// one that selects by the most labels of the VMI; of these the first by name.
func Of(all []*MigrationPolicy, labels, namespaceLabels map[string]string) *MigrationPolicy {
	matching := slices.DeleteFunc(slices.Clone(all), func(p *MigrationPolicy) bool {
		s := p.Spec.Selectors
		return p.DeletionTimestamp != nil || s == nil || !has(labels, s.VirtualMachineInstanceSelector) || !has(namespaceLabels, s.NamespaceSelector)
	})
	if len(matching) == 0 {
		return nil
	}
	return slices.MinFunc(matching, func(a, b *MigrationPolicy) int {
		x, y := a.Spec.Selectors, b.Spec.Selectors
		ofVMI, its := len(x.VirtualMachineInstanceSelector), len(y.VirtualMachineInstanceSelector)
		return cmp.Or(cmp.Compare(its+len(y.NamespaceSelector), ofVMI+len(x.NamespaceSelector)), cmp.Compare(its, ofVMI), cmp.Compare(a.Name, b.Name))
	})
}

// has says that all of some labels are there.
func has(labels, some map[string]string) bool {
	for k, v := range some {
		if is, ok := labels[k]; !ok || is != v {
			return false
		}
	}
	return true
}
