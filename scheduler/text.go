package scheduler

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/podvisor/podvisor/vmi"
)

// String is the plan for people: a line for each action in their order, and one for the time
// after which to decide again. A plan without either is "nothing to do".
func (p Plan) String() string {
	var lines []string
	for _, a := range p.Actions {
		lines = append(lines, a.String())
	}
	if p.Recheck > 0 {
		lines = append(lines, "decide again after "+p.Recheck.String())
	}
	if len(lines) == 0 {
		return "nothing to do"
	}
	return strings.Join(lines, "\n")
}

// The texts of the actions.

func (a AddFinalizer) String() string     { return "add finalizer " + a.Finalizer }
func (a RemoveFinalizer) String() string  { return "remove finalizer " + a.Finalizer }
func (a SetLabel) String() string         { return "set label " + a.Key + "=" + a.Value }
func (a RemoveLabel) String() string      { return "remove label " + a.Key }
func (a DeleteObject) String() string     { return "delete the object" }
func (a CreatePod) String() string        { return "create pod " + a.Pod.Name }
func (a CreateClaim) String() string      { return "create claim " + a.Claim.Name }
func (a DeletePod) String() string        { return fmt.Sprintf("delete pod %s (%s)", a.Name, a.UID) }
func (a EvictPod) String() string         { return fmt.Sprintf("evict pod %s (%s)", a.Name, a.UID) }
func (a CreateInstance) String() string   { return "create VMI " + a.Instance.Name }
func (a DeleteInstance) String() string   { return "delete VMI " + a.Instance.Name }
func (a AdoptInstance) String() string    { return "adopt VMI " + a.Instance.Name }
func (a ReleaseInstance) String() string  { return "release VMI " + a.Instance.Name }
func (a CreateVM) String() string         { return "create VM " + a.VM.Name }
func (a DeleteVM) String() string         { return "delete VM " + a.VM.Name }
func (a ChangeVM) String() string         { return "change VM " + a.From.Name }
func (a RestartVM) String() string        { return "restart VM " + a.VM.Name }
func (a CreateDataVolume) String() string { return "create DataVolume " + a.DataVolume.GetName() }
func (a CreateRevision) String() string   { return "create ControllerRevision " + a.Revision.Name }
func (a SetRunStrategy) String() string {
	return fmt.Sprintf("set run strategy from %s to %s", a.From, a.To)
}

func (a CreateMigration) String() string {
	return fmt.Sprintf("create migration %s of VMI %s", a.Migration.Name, a.Migration.Spec.VMIName)
}

func (a DeleteRevision) String() string {
	return fmt.Sprintf("delete ControllerRevision %s (%s)", a.Name, a.UID)
}

func (a SetPodCondition) String() string {
	return fmt.Sprintf("set condition %s=%s of pod %s (%s)", a.Condition.Type, a.Condition.Status, a.Name, a.UID)
}

func (a AnnotatePod) String() string {
	return fmt.Sprintf("annotate pod %s (%s): %s=%s", a.Name, a.UID, a.Key, a.Value)
}

func (a ChangeLabels) String() string {
	return "change labels:" + labelText(a.Labels, slices.Concat(a.Removed, a.Annotations))
}

func (a ChangeClaim) String() string {
	return fmt.Sprintf("change labels of claim %s (%s):%s", a.Name, a.UID, labelText(a.Labels, a.Removed))
}

func (a DeleteClaim) String() string { return fmt.Sprintf("delete claim %s (%s)", a.Name, a.UID) }

func labelText(labels map[string]string, removed []string) string {
	text := ""
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		text += fmt.Sprintf(" %s=%s", k, labels[k])
	}
	for _, k := range removed {
		text += " without " + k
	}
	return text
}

// String has the status as JSON, as it is stored.
func (a WriteInstance) String() string {
	return "VMI " + a.From.Name + ": " + WriteStatus[*vmi.VirtualMachineInstance]{Object: a.To}.String()
}

func (a EmitFor) String() string { return "VMI " + a.Instance.Name + ": " + a.Emit.String() }

func (a AnnounceGuest) String() string {
	return fmt.Sprintf("have the handler of the source announce the guest of VMI %s", a.Instance.Name)
}

func (a AcceptMigration) String() string {
	return fmt.Sprintf("have the handler of the target accept the migration of VMI %s to pod %s", a.Instance.Name, a.Pod)
}

func (a StartMigration) String() string {
	if a.Held {
		return fmt.Sprintf("have the handler of the source hold VMI %s, which will never run in pod %s", a.Instance.Name, a.Pod)
	}
	if a.Over {
		return fmt.Sprintf("have the handler of the source go on with VMI %s, which will never run in pod %s", a.Instance.Name, a.Pod)
	}
	return fmt.Sprintf("have the handler of the source begin the migration of VMI %s to pod %s", a.Instance.Name, a.Pod)
}

func (a AbortMigration) String() string {
	return "have the handler of the source end the migration of VMI " + a.Instance.Name
}

func (a ChangeInstance) String() string {
	text := "change VMI " + a.Instance.Name + ":"
	for _, k := range slices.Sorted(maps.Keys(a.Annotations)) {
		text += fmt.Sprintf(" annotation %s=%s", k, a.Annotations[k])
	}
	for _, n := range slices.Sorted(maps.Keys(a.Links)) {
		text += fmt.Sprintf(" link %s=%s", n, a.Links[n])
	}
	return text
}

// String has the status as JSON, as it is stored.
func (a WriteStatus[T]) String() string {
	raw, err := json.Marshal(a.Object)
	var stored struct {
		Status json.RawMessage `json:"status"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &stored)
	}
	if err != nil {
		return fmt.Sprintf("write status that cannot be encoded: %v", err)
	}
	return "write status " + string(stored.Status)
}

func (a Emit) String() string {
	kind := "event"
	if a.Warning {
		kind = "warning"
	}
	return fmt.Sprintf("emit %s %s: %s", kind, a.Reason, a.Message)
}
