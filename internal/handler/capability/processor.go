package capability

import (
	"strings"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

// processorPrefixes begin the labels of nodes about processors. The policy of
// virt-handler allows them.
func processorPrefixes() []string {
	return []string{
		vmi.CPUModelLabelPrefix, vmi.CPUFeatureLabelPrefix, vmi.CPUMigrationLabelPrefix, vmi.HostModelLabelPrefix,
		vmi.HostModelFeatureLabelPrefix, vmi.CPUVendorLabelPrefix, vmi.ObsoleteHostModelLabel, vmi.CPUManagerLabel,
	}
}

// IsProcessorLabel says that a label of a node is one about processors.
func IsProcessorLabel(key string) bool {
	for _, p := range processorPrefixes() {
		if strings.HasPrefix(key, p) {
			return true
		}
	}
	return false
}

// ProcessorLabels are the labels about processors of a node on which guests can have
// p, in a cluster with the configuration c. Where that does not say whether guests are
// emulated, they are if emulated. Without KVM and emulation no guest can run there,
// and there are no labels.
func ProcessorLabels(p protocol.Processors, hasKVM, emulated bool, c config.Config) map[string]string {
	if e := c.Pods.Emulation; e != nil {
		emulated = *e
	}
	switch {
	case emulated:
		return emulatedLabels(p.Emulated, c.Nodes.Obsolete())
	case hasKVM:
		return nativeLabels(p.Native, c.Nodes.Obsolete())
	default:
		return map[string]string{}
	}
}

// nativeLabels are the labels of a node whose guests have the processor with KVM. A
// model that is obsolete has no label, and if it is what host-model stands for, the
// node has a label that says so.
func nativeLabels(p protocol.Processor, obsolete map[string]bool) map[string]string {
	l := emulatedLabels(p, obsolete)
	if p.HostModel == "" {
		return l
	}
	l[vmi.HostModelLabelPrefix+p.HostModel] = "true"
	l[vmi.CPUMigrationLabelPrefix+p.HostModel] = "true"
	for _, f := range p.HostModelFeatures {
		l[vmi.HostModelFeatureLabelPrefix+f] = "true"
	}
	if obsolete[p.HostModel] {
		l[vmi.ObsoleteHostModelLabel] = "true"
	}
	return l
}

// emulatedLabels are the labels of a node whose guests are emulated. There is no host
// model then: a guest that asks for it has the same model on every node.
func emulatedLabels(p protocol.Processor, obsolete map[string]bool) map[string]string {
	l := map[string]string{}
	for _, m := range p.Models {
		if !obsolete[m] {
			l[vmi.CPUModelLabelPrefix+m], l[vmi.CPUMigrationLabelPrefix+m] = "true", "true"
		}
	}
	for _, f := range p.Features {
		l[vmi.CPUFeatureLabelPrefix+f] = "true"
	}
	if p.Vendor != "" {
		l[vmi.CPUVendorLabelPrefix+p.Vendor] = "true"
	}
	return l
}
