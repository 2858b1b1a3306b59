package replicaset

// Reasons of conditions of a set.
const (
	// FailedStart is the reason of ReplicaFailure while VMIs of the set fail.
	FailedStart = "FailedStart"
	// Paused is the reason of ReplicaPaused.
	Paused = "Paused"
	// InvalidTemplate is the reason of the condition ReplicaFailure of a set that could
	// not find the VMIs that it creates: it creates and adopts none.
	InvalidTemplate = "InvalidTemplate"
	// Outdated is the reason of the condition ReplicaOutdated.
	Outdated = "TemplateChanged"
)
