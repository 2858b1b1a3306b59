package volume

import (
	"fmt"
	"strings"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// Kind is a kind of volume. All that the package knows of a kind is in its entry.
type Kind struct {
	// Name is the JSON name of the source in the spec. Of two kinds with one name, the
	// first serves. Required.
	Name string
	// Migratable says that a guest that moves to another node can take a volume along:
	// its disk is copied, or it is in a claim that the pods of both nodes can mount.
	Migratable bool
	// Hotpluggable says that a volume can be attached to a guest that runs.
	Hotpluggable bool
	// Outlasts says that what the guest writes is there when the VMI has ended.
	Outlasts bool
	// Shared are the names of what all volumes of the kind use together.
	Shared Names
	// Claim returns the claim that a volume is in. Nil: volumes of the kind are in none.
	Claim func(vmi.Volume) Claim
	// Pod returns what the pod needs for a volume. Nil: nothing.
	Pod func(vmi.Volume, PodNames, Cluster) Part
	// Observe returns what has to be observed before a volume is attached. Nil:
	// nothing.
	Observe func(vmi.Volume, Node) Observation
	// attach returns the attachment of a volume's disk. Required.
	Attach func(*vmi.VirtualMachineInstance, vmi.Volume, Node) (storage.Attachment, error)
}

// Of returns the kind of a volume. A volume without exactly one source, or with one
// that is not among the kinds, is an error that wraps [vmi.ErrInvalid]. Nil kinds:
// [Kinds].
func Of(v vmi.Volume, among []Kind) (Kind, error) { return orAll(among).of(v) }

// kinds are kinds of volumes.
type kinds []Kind

// orAll are the kinds, or all that the package serves.
func orAll(these []Kind) kinds {
	if these == nil {
		return Kinds()
	}
	return these
}

func (all kinds) of(v vmi.Volume) (Kind, error) {
	set := v.Kinds()
	if len(set) == 0 {
		return Kind{}, fmt.Errorf("volume %s: no source is set: %w", v.Name, vmi.ErrInvalid)
	}
	if len(set) > 1 {
		return Kind{}, fmt.Errorf("volume %s: %d sources are set (%s), not one: %w", v.Name, len(set), strings.Join(set, ", "), vmi.ErrInvalid)
	}
	for _, k := range all {
		if k.Name == set[0] {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("volume %s: kind %s is not served: %w", v.Name, set[0], vmi.ErrInvalid)
}
