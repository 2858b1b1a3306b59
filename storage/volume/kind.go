package volume

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// served are the kinds of volumes that are served. Every other one is refused.
var served = kinds{
	containerDisk,
	cloudInitNoCloud,
	cloudInitConfigDrive,
	emptyDisk,
	persistentVolumeClaim,
	dataVolume,
	ephemeral,
	hostDisk,
	configMap,
	secret,
	downwardAPI,
	serviceAccount,
	sysprep,
}

// kinds are kinds of volumes.
type kinds []kind

// kind is a kind of volume.
type kind struct {
	// name is the JSON name of its source in the spec.
	name string
	// shared are the names of what all volumes of the kind use together.
	shared Names
	// claim returns the claim that a volume is in. Nil: volumes of the kind are in none.
	claim func(vmi.Volume) claim
	// shares says that a volume can be a file system.
	shares bool
	// pod returns what the pod needs for a volume. Nil: nothing.
	pod func(vmi.Volume, names, Cluster) Part
	// observe returns what has to be observed before a volume is attached. Nil:
	// nothing.
	observe func(vmi.Volume, Node) Observation
	// attach returns the attachment of a volume's disk.
	attach func(*vmi.VirtualMachineInstance, vmi.Volume, Node) (storage.Attachment, error)
}

// of returns the kind of a volume. A volume without exactly one source, or with one
// that is not among the kinds, is an error that wraps [vmi.ErrInvalid].
func (all kinds) of(v vmi.Volume) (kind, error) {
	set := sources(v.VolumeSource)
	if len(set) == 0 {
		return kind{}, fmt.Errorf("volume %s: no source is set: %w", v.Name, vmi.ErrInvalid)
	}
	if len(set) > 1 {
		return kind{}, fmt.Errorf("volume %s: %d sources are set (%s), not one: %w", v.Name, len(set), strings.Join(set, ", "), vmi.ErrInvalid)
	}
	for _, k := range all {
		if k.name == set[0] {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf("volume %s: kind %s is not served: %w", v.Name, set[0], vmi.ErrInvalid)
}

// sources are the JSON names of the sources that are set.
func sources(s vmi.VolumeSource) []string {
	var set []string
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			set = append(set, name)
		}
	}
	return set
}
