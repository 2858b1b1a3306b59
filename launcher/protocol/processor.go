package protocol

// Processors are what guests can have on a node, as the launcher's libvirt knows it.
// The zero value: nothing is known.
type Processors struct {
	// Native is what guests can have with KVM. It follows from the node's processor:
	// the container that finds it out has no /dev/kvm.
	Native Processor `json:"native,omitzero"`
	// Emulated is what guests can have without.
	Emulated Processor `json:"emulated,omitzero"`
}

// Processor is what guests can have in one way.
type Processor struct {
	// Vendor of the processor, for example Intel.
	Vendor string `json:"vendor,omitempty"`
	// Models that guests can have by their names, in full.
	Models []string `json:"models,omitempty"`
	// Features that guests can have.
	Features []string `json:"features,omitempty"`
	// HostModel is the model of guests that have the closest to the node's.
	HostModel string `json:"hostModel,omitempty"`
	// HostModelFeatures are those that it has besides what its model has.
	HostModelFeatures []string `json:"hostModelFeatures,omitempty"`
}
