package protocol

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
)

// The calls of a migration. virt-controller makes the first three to the handlers of both
// nodes. The handler of the source makes the others: to its own launcher, and, through the
// handler of the target, to the launcher there. They follow each other as they stand here,
// once for a migration. To repeat one that was made for the same migration gives the same
// answer.
const (
	// CallMigrationAnnounce has the handler of the source announce the guest in its networks
	// until the migration is started there: the target's pod comes up with the guest's MAC
	// addresses. Its options are a [MigrationStep] without a cookie. It ends by itself unless
	// it is repeated.
	CallMigrationAnnounce Call = "migration-announce"
	// CallMigrationAccept makes the handler of the target ready for a migration. Its options
	// are a [MigrationAccept]. It is answered when the launcher waits for the guest.
	CallMigrationAccept Call = "migration-accept"
	// CallMigrationStart makes the handler of the source begin a migration, or go on with one
	// after its own restart or that of its peer. Its options are a [MigrationStart]. It is
	// answered before the migration has ended.
	CallMigrationStart Call = "migration-start"
	// CallMigrationBegin asks the launcher of the source for its domain. Its options are a
	// [MigrationBegin]; it is answered with a [MigrationBegun].
	CallMigrationBegin Call = "migration-begin"
	// CallMigrationPrepare makes the launcher of the target wait for the domain. Its options
	// are a [MigrationPrepare]; it is answered with a [MigrationStep].
	CallMigrationPrepare Call = "migration-prepare"
	// CallMigrationPerform makes the launcher of the source send the domain. Its options are
	// a [MigrationStep]; it is answered with one when everything is at the target and the
	// guest stands still. From then on the source does not resume it by itself.
	CallMigrationPerform Call = "migration-perform"
	// CallMigrationFinish sends the launcher of the target the outcome of the step before.
	// Its options are a [MigrationEnd]; it is answered with a [MigrationStep] when the guest
	// runs there, or refused as [ReasonNotMoved] when it never will.
	CallMigrationFinish Call = "migration-finish"
	// CallMigrationConfirm sends the launcher of the source the outcome of that. Its options
	// are a [MigrationEnd].
	CallMigrationConfirm Call = "migration-confirm"
	// CallMigrationAbort ends the sending. Its options are a [MigrationStep] without a
	// cookie. It fails once everything is at the target. Also virt-controller makes it, to the
	// handler of the source.
	CallMigrationAbort Call = "migration-abort"
)

// ReasonNotMoved refuses a [CallMigrationFinish]: the target has destroyed the guest, which
// never ran there. It refuses a [CallMigrationAccept] when nothing is left of the target's pod.
const ReasonNotMoved = "NotMoved"

// The reasons of other refusals, and of why a migration failed.
const (
	// ReasonContainerDiskChanged: what the target has below the layer of a disk that is sent
	// is not what the source has.
	ReasonContainerDiskChanged = "ContainerDiskChanged"
	// ReasonContainerDiskNotCompared: what is below that layer could not be read in time, or at
	// all, so it is not known whether it is the same on both sides.
	ReasonContainerDiskNotCompared = "ContainerDiskNotCompared"
	// ReasonDiskDiffers: a disk that the target makes itself has another size there.
	ReasonDiskDiffers = "DiskDiffers"
	// ReasonNoPostCopy: post-copy is permitted, and the target cannot do it.
	ReasonNoPostCopy = "PostCopyUnavailable"
	// ReasonMigrationAborted: the migration was aborted, by a call or because it took too long.
	ReasonMigrationAborted = "MigrationAborted"
	// ReasonMigrationFailed: libvirt or QEMU failed to move the guest.
	ReasonMigrationFailed = "MigrationFailed"
)

// IsMigration says that a call or a stream belongs to a migration. Only handlers make those
// to launchers, and no user has them.
func (p Path) IsMigration() bool {
	return slices.Contains(migrationCalls, p.Call) || slices.Contains(migrationStreams, p.Stream)
}

var (
	migrationCalls = []Call{
		CallMigrationAnnounce, CallMigrationAccept, CallMigrationStart, CallMigrationBegin, CallMigrationPrepare, CallMigrationPerform,
		CallMigrationFinish, CallMigrationConfirm, CallMigrationAbort,
	}
	migrationStreams = []Stream{StreamMigrationMemory, StreamMigrationDisks}
)

// The streams of a migration: each is one connection of QEMU, of which there are several.
// At the source it opens when QEMU connects, and waits for that. At the target it is
// connected to the QEMU that waits.
const (
	// StreamMigrationMemory carries memory and the state of devices.
	StreamMigrationMemory Stream = "migration-memory"
	// StreamMigrationDisks carries the disks that are copied.
	StreamMigrationDisks Stream = "migration-disks"
)

// MaxMigration is the longest options of a call of a migration and the longest answer to
// one, in bytes: they have the XML of a domain.
const MaxMigration = 1 << 20

// MaxOptions is the longest options of the call of the path, in bytes.
func (p Path) MaxOptions() int { return p.most(MaxOptions) }

// MaxAnswer is the longest answer to the call of the path, in bytes.
func (p Path) MaxAnswer() int { return p.most(MaxAnswer) }

func (p Path) most(of int) int {
	if p.IsMigration() {
		return MaxMigration
	}
	return of
}

// MigrationAccept are the options of a [CallMigrationAccept].
type MigrationAccept struct {
	// UID is that of the migration.
	UID types.UID `json:"uid"`
	// Certificate is the hash of the certificate that the handler of the source presents.
	Certificate string `json:"certificate"`
}

// MigrationStart are the options of a [CallMigrationStart].
type MigrationStart struct {
	// UID is that of the migration.
	UID types.UID `json:"uid"`
	// Node is the node of the target.
	Node string `json:"node"`
	// Pod is the UID of the pod of the target.
	Pod types.UID `json:"pod"`
	// Address is where the handler of the target listens: an address and a port.
	Address string `json:"address"`
	// Certificate is the hash of the certificate that it presents.
	Certificate string `json:"certificate"`
	// Settings are how the guest moves.
	Settings MigrationSettings `json:"settings,omitzero"`
	// Over says that the guest will never run at the target: virt-controller knows that the
	// pod there is over, on a node that lives, or that the node is fenced. A guest that stands
	// still since everything of it was sent is resumed then. It is refused with the reason
	// [MovedAway] if the guest ran there.
	Over bool `json:"over,omitempty"`
	// Held says that it is not to be resumed yet: what the target has of its state is discarded
	// before. A handler that answers takes no word of the target after it.
	Held bool `json:"held,omitempty"`
}

// MigrationSettings are how a guest moves. A receiver that does not know a field moves the
// guest without it.
type MigrationSettings struct {
	// MiBPerSecond limits what is sent of memory, and of each disk. 0: nothing does.
	MiBPerSecond int `json:"mibPerSecond,omitempty"`
	// Connections is how many connections send the memory at the same time. 0: one. Only a
	// virt-controller of before v0.3.0 asks for more, and both launchers have to do it then.
	Connections int `json:"connections,omitempty"`
	// AutoConverge slows a guest down that changes its memory faster than that is sent.
	AutoConverge bool `json:"autoConverge,omitempty"`
	// PostCopy permits post-copy.
	PostCopy bool `json:"postCopy,omitempty"`
	// Disruption permits to help a migration that is late: by post-copy if that is permitted,
	// else by pausing the guest. Otherwise it is aborted.
	Disruption bool `json:"disruption,omitempty"`
	// SecondsPerGB is the time for each 10^9 bytes of memory and of copied disks, rounded up.
	// 0: there is no limit.
	SecondsPerGB int64 `json:"secondsPerGB,omitempty"`
	// ProgressSeconds is how long the bytes that are left may not become fewer. 0: for ever.
	ProgressSeconds int64 `json:"progressSeconds,omitempty"`
	// DowntimeMillis is how long the guest may stand still while the rest is sent. 0: 300.
	DowntimeMillis int64 `json:"downtimeMillis,omitempty"`
}

// MigrationBegin are the options of a [CallMigrationBegin].
type MigrationBegin struct {
	UID      types.UID         `json:"uid"`
	Settings MigrationSettings `json:"settings,omitzero"`
}

// MigrationBegun is the answer to a [CallMigrationBegin].
type MigrationBegun struct {
	// XML is the domain as it runs.
	XML string `json:"xml"`
	// Cookie is for the launcher of the next step, which alone reads it.
	Cookie []byte `json:"cookie,omitempty"`
	// Disks are those of the domain.
	Disks []MigrationDisk `json:"disks,omitempty"`
}

// MigrationDisk is a disk of a domain that moves.
type MigrationDisk struct {
	// Name is the volume's name in the spec, and Target the disk's on its bus.
	Name   string `json:"name"`
	Target string `json:"target"`
	// SizeBytes is the size that the guest sees.
	SizeBytes int64 `json:"sizeBytes,omitempty"`
	// Copied says that what the guest sees, or the layer above Backing, is sent. False: the
	// target has the disk, or Content is what is in it.
	Copied bool `json:"copied,omitempty"`
	// Content is that of an image which the pod has made and the guest only reads, compressed
	// by gzip. Empty: it is another disk, or a larger image, of which Backing is known.
	Content []byte `json:"content,omitempty"`
	// Backing is what is known of the file below the layer that is sent, or of an image that
	// is not sent. Nil: there is none.
	Backing *MigrationBacking `json:"backing,omitempty"`
}

// MigrationBacking is what is known of a file that both sides must have. Two are the same
// whose sizes are equal, and whose hashes are: those of files in container images are known.
type MigrationBacking struct {
	SizeBytes int64 `json:"sizeBytes"`
	// Hash is that of the content, with the name of the algorithm.
	Hash string `json:"hash,omitempty"`
}

// MigrationPrepare are the options of a [CallMigrationPrepare].
type MigrationPrepare struct {
	MigrationBegin
	MigrationBegun
}

// MigrationStep are the options of, and the answer to, the steps of a migration that only
// hand over what the launchers have to say to each other.
type MigrationStep struct {
	UID types.UID `json:"uid"`
	// Cookie is for the launcher of the next step, which alone reads it.
	Cookie []byte `json:"cookie,omitempty"`
}

// MigrationEnd says how a step of a migration ended.
type MigrationEnd struct {
	MigrationStep
	// Moved says that it succeeded.
	Moved bool `json:"moved,omitempty"`
	// Mode is how the memory was sent, and Address the address and the port at which the
	// handler of the source has reached that of the target. The options of a
	// [CallMigrationFinish] have them: the handler of the target reports them if the other one
	// could not. Empty: the sender is of another release, or does not know it.
	Mode    vmi.MigrationMode `json:"mode,omitempty"`
	Address string            `json:"address,omitempty"`
}

// Migration is what a launcher knows of the last migration that it took part in.
type Migration struct {
	// UID is that of the migration.
	UID types.UID `json:"uid"`
	// Stage is where it stands.
	Stage MigrationStage `json:"stage"`
	// Mode is how the memory is sent, at the source. Empty: it is not sent yet.
	Mode vmi.MigrationMode `json:"mode,omitempty"`
	// Finding is why it failed. Nil: it has not.
	Finding *vmi.Finding `json:"finding,omitempty"`
}

// MigrationStage is where a migration stands for one of its launchers.
type MigrationStage string

// The stages at the source.
const (
	// MigrationBegins: nothing is sent yet.
	MigrationBegins MigrationStage = "Begins"
	// MigrationSends: the guest runs here and is sent.
	MigrationSends MigrationStage = "Sends"
	// MigrationSent: everything is at the target. The guest stands still and may run there: it
	// is not resumed here before the target has said that it does not.
	MigrationSent MigrationStage = "Sent"
	// MigrationStays: the migration has failed or was aborted, and the guest runs here.
	MigrationStays MigrationStage = "Stays"
)

// The stages at the target.
const (
	// MigrationReceives: a QEMU waits for the guest or receives it.
	MigrationReceives MigrationStage = "Receives"
	// MigrationArrived: the guest runs here, or ran here.
	MigrationArrived MigrationStage = "Arrived"
	// MigrationDiscarded: the guest was destroyed here and has never run here. That stays
	// known when the launcher is started again.
	MigrationDiscarded MigrationStage = "Discarded"
)

var migrationStages = []MigrationStage{
	MigrationBegins, MigrationSends, MigrationSent, MigrationStays, MigrationReceives, MigrationArrived, MigrationDiscarded,
}

// sanitized is the migration with a stage and a mode that this release knows. It is
// dropped by an unknown stage.
func (m *Migration) sanitized() *Migration {
	if m == nil || !slices.Contains(migrationStages, m.Stage) || len(m.UID) > maxWord || sanitizeToken(string(m.UID)) == "" {
		return nil
	}
	out := &Migration{UID: m.UID, Stage: m.Stage, Finding: present(m.Finding, SanitizeFinding)}
	if slices.Contains([]vmi.MigrationMode{vmi.MigrationPreCopy, vmi.MigrationPostCopy, vmi.MigrationPaused}, m.Mode) {
		out.Mode = m.Mode
	}
	return out
}
