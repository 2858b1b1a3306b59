package served

import (
	"slices"

	"github.com/podvisor/podvisor/vmi"
)

// Mark is an annotation or a label of VMIs or VMs, or of the template of VMIs, by which
// KubeVirt does something. The rule for fields holds for them: one works, or is refused, or
// changes nothing that a user of the VMI sees.
type Mark struct {
	// Key is that of the annotation, or of the label.
	Key string
	// Label says that it is a label.
	Label bool
	// State is what becomes of it here.
	State MarkState
	// Why says what it does, or why it is refused or does nothing, without a period.
	Why string
}

// MarkState is what becomes of a mark.
type MarkState string

// The states of marks.
const (
	// MarkWorks has the effect that it has in KubeVirt.
	MarkWorks MarkState = "works"
	// MarkRefused is a fault of the object: see package validate.
	MarkRefused MarkState = "refused"
	// MarkHarmless has no effect, and the VMI is what its author asks for without it.
	MarkHarmless MarkState = "harmless"
)

const (
	ownTests     = "it is for KubeVirt's own tests of migrations"
	ofMigrations = "it is read of migrations, and not of VMIs"
	logsAlone    = "what a launcher logs is chosen in the cluster's configuration"
)

// marks are all, sorted by their keys.
var marks = []Mark{
	{vmi.HookSidecarsAnnotation, false, MarkRefused, "no container changes the domain of a VMI"},
	{"kubevirt.io/allow-pod-bridge-network-live-migration", false, MarkHarmless, "a guest that has the address of its pod does not move to another"},
	{vmi.NoPCIHole64Annotation, false, MarkWorks, "the guest has no PCI memory above 4 GiB, with the value true"},
	{vmi.NoPageReportingAnnotation, false, MarkWorks, "the guest does not report memory that it has free, with the value true"},
	{"kubevirt.io/func-test-block-migration-target-preparation", false, MarkHarmless, ownTests},
	{"kubevirt.io/func-test-force-launcher-migration-failure", false, MarkHarmless, ownTests},
	{"kubevirt.io/func-test-ignore-migration-backoff", false, MarkHarmless, ownTests},
	{"kubevirt.io/func-test-memory-hotplug-fail", false, MarkHarmless, "no memory is added to a guest that runs"},
	{"kubevirt.io/func-test-migration-target-image-override", false, MarkHarmless, ownTests},
	{vmi.IgnitionAnnotation, false, MarkRefused, "guests are given no configuration by Ignition: use cloud-init"},
	{"kubevirt.io/keep-launcher-alive-after-failure", false, MarkHarmless, "the log of a launcher that has failed is kept with its pod"},
	{"kubevirt.io/libvirt-log-filters", false, MarkHarmless, logsAlone},
	{"kubevirt.io/memfd", false, MarkHarmless, "which file the guest's memory is made of is the launcher's to choose"},
	{"kubevirt.io/migrationPendingPodTimeoutSeconds", false, MarkHarmless, ofMigrations},
	{"kubevirt.io/migrationUnschedulablePodTimeoutSeconds", false, MarkHarmless, ofMigrations},
	{"kubevirt.io/nonroot", false, MarkHarmless, "no launcher runs as root"},
	{vmi.RootComplexAnnotation, false, MarkWorks, "no device of the guest is behind a PCI Express port, with the value true"},
	{"kubevirt.io/skip-backup-hooks", false, MarkHarmless, "launcher pods have no hooks of Velero but those that the VMI has"},
	{"debugLogs", true, MarkHarmless, logsAlone},
	{"kubevirt.io/vm-pool-revision-name", true, MarkHarmless, "a pool writes it itself, by its template"},
	{"logVerbosity", true, MarkHarmless, logsAlone},
	{"virtiofsdDebugLogs", true, MarkHarmless, logsAlone},
}

// Marks are the annotations and labels by which KubeVirt does something, beside the labels
// that only Podvisor writes (vmi.ReservedLabels): annotations first, each sorted by key.
func Marks() []Mark { return slices.Clone(marks) }
