package vmi

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// StartRevision is the name of the ControllerRevision that holds the spec of the
// VirtualMachine with this UID as it was in this generation, for a VMI that was
// started from it.
func StartRevision(vm types.UID, generation int64) string {
	return fmt.Sprintf("%s%s-%d", startRevision, vm, generation)
}

const startRevision = "revision-start-vm-"

// StartedVM is the UID of the VirtualMachine that a name of [StartRevision] has. Empty:
// it is another name.
func StartedVM(revision string) types.UID {
	uid, ok := strings.CutPrefix(revision, startRevision)
	last := strings.LastIndex(uid, "-")
	if !ok || last < 0 {
		return ""
	}
	return types.UID(uid[:last])
}

// StartGeneration is the generation of its VirtualMachine whose template the VMI has.
// 0: it is not known.
func StartGeneration(v *VirtualMachineInstance) int64 {
	return generation(v, VMGenerationAnnotation)
}

// RevisionGeneration is the generation in the name of the [StartRevision] that the VMI was
// started from. 0: it is not known.
func (v *VirtualMachineInstance) RevisionGeneration() int64 {
	n := StartGeneration(v)
	if earlier := generation(v, StartRevisionAnnotation); n != 0 && earlier != 0 {
		return earlier
	}
	return n
}

func generation(v *VirtualMachineInstance, annotation string) int64 {
	n, err := strconv.ParseInt(v.Annotations[annotation], 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
