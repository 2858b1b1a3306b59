package migration

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// Reasons of events about migrations, and about the VMIs that move.
const (
	// FailedMigration: a migration has failed.
	FailedMigration = "FailedMigration"
	// SuccessfulMigration: a VMI has moved.
	SuccessfulMigration = "SuccessfulMigration"
	// SuccessfulHandOver: a VMI was handed over to the node of a target.
	SuccessfulHandOver = "SuccessfulHandOver"
	// SuccessfulAbortMigration: the handler of the source was asked to abort.
	SuccessfulAbortMigration = "SuccessfulAbortMigration"
	// TargetUnschedulable: there is no node for a target.
	TargetUnschedulable = "migrationTargetPodUnschedulable"
	// NoSuitableNodes: no other node has what the processor of the guest needs.
	NoSuitableNodes = "NoSuitableNodesForHostModelMigration"
	// Backoff: a migration waits since the last ones have failed.
	Backoff = "MigrationBackoff"
	// FailedCreate: a target is refused.
	FailedCreate = "FailedCreate"
)

// Reasons of failure that clients match, in status.migrationState.failureReason.
const (
	aborted    = "Live migration has been aborted"
	targetDown = "Target pod is down"
)

// Names that clients rely on.
const (
	// ignoreBackoffAnnotation begins a migration without the time after failed ones.
	ignoreBackoffAnnotation = "kubevirt.io/func-test-ignore-migration-backoff"
	// unschedulableAnnotation and pendingAnnotation are how many seconds a target may wait for
	// a node, and at all.
	unschedulableAnnotation = "kubevirt.io/migrationUnschedulablePodTimeoutSeconds"
	pendingAnnotation       = "kubevirt.io/migrationPendingPodTimeoutSeconds"
)

// abortRequested is the condition of a migration that was deleted before it had ended.
var abortRequested = vmi.Condition{Type: vmi.ConditionAbortRequested, Status: corev1.ConditionTrue,
	Reason: "Deleted", Message: "the migration was deleted before it had ended"}
