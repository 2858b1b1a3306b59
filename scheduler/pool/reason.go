package pool

// Reasons of conditions of a pool.
const (
	// FailedStart: a VM of the pool does not start.
	FailedStart = "FailedStart"
	// Paused is the reason of ReplicaPaused.
	Paused = "Paused"
	// InvalidTemplate: no VM can be made from the template.
	InvalidTemplate = "InvalidTemplate"
	// Outdated is the reason of ReplicaOutdated.
	Outdated = "TemplateChanged"
)
