package client

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/podvisor/podvisor/vmi"
)

// WriteStatus makes the status of the machine old what it is in changed, by one
// merge patch that holds only the difference. The patch carries old's
// resourceVersion, so it fails with a conflict if somebody else wrote in
// between. Nothing is written, and old is returned, if the two are equal.
func WriteStatus(ctx context.Context, i Instances, old, changed *vmi.VirtualMachineInstance) (*vmi.VirtualMachineInstance, error) {
	if equality.Semantic.DeepEqual(old.Status, changed.Status) {
		return old, nil
	}
	patch, err := statusPatch(old, changed)
	if err != nil {
		return nil, fmt.Errorf("compare the status of %s/%s: %w", old.Namespace, old.Name, err)
	}
	return i.Patch(ctx, old.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
}

// statusPatch is the merge patch from old's status to changed's.
func statusPatch(old, changed *vmi.VirtualMachineInstance) ([]byte, error) {
	type status struct {
		Status *vmi.VirtualMachineInstanceStatus `json:"status"`
	}
	from, err := json.Marshal(status{&old.Status})
	if err != nil {
		return nil, err
	}
	to, err := json.Marshal(status{&changed.Status})
	if err != nil {
		return nil, err
	}
	diff, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil {
		return nil, err
	}
	var patch map[string]any
	if err := json.Unmarshal(diff, &patch); err != nil {
		return nil, err
	}
	patch["metadata"] = map[string]any{"uid": old.UID, "resourceVersion": old.ResourceVersion}
	return json.Marshal(patch)
}
