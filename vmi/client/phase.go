package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// ErrEnded is wrapped by the error of [WaitForPhase] when the VMI cannot
// come into a phase that is waited for, because it ended in another or was
// deleted.
var ErrEnded = errors.New("the VMI has ended")

// WaitForPhase waits until the VMI is in one of the phases, and returns it. A VMI
// that does not exist is waited for; one that is deleted before, even if there is
// another of its name by now, or ends in another phase is an error that wraps
// [ErrEnded]; one that cannot be decoded is one that wraps [vmi.ErrUnreadable]. The error holds the last phase and its reason; besides it, the VMI as
// it was last observed is returned, or nil if it did not exist. See [WaitFor] for
// what else ends the wait.
func WaitForPhase(ctx context.Context, i VirtualMachineInstances, name string, phases ...vmi.Phase) (*vmi.VirtualMachineInstance, error) {
	var seen *vmi.VirtualMachineInstance
	gone := false
	v, err := wait(ctx, i, name, func(v *vmi.VirtualMachineInstance) (bool, error) {
		switch {
		case seen != nil && (v == nil || v.UID != seen.UID):
			gone = true
			return false, ErrEnded
		case v == nil:
			return false, nil
		case vmi.Unreadable(v) != nil:
			return false, readable(vmi.VirtualMachineInstances.Kind, v)
		case slices.Contains(phases, v.Status.Phase):
			return true, nil
		case v.Status.Phase.Final():
			return false, ErrEnded
		}
		seen = v
		return false, nil
	})
	if err == nil {
		return v, nil
	}
	if gone {
		v = seen
	}
	state := describe(v)
	if gone {
		state += ", and was deleted"
	}
	return v, fmt.Errorf("wait for VMI %s to be %s: %w: %s", name, alternatives(phases), err, state)
}

func alternatives(phases []vmi.Phase) string {
	out := make([]string, len(phases))
	for i, p := range phases {
		out[i] = string(p)
	}
	return strings.Join(out, " or ")
}

// describe says in which phase the VMI was last observed, and why.
func describe(v *vmi.VirtualMachineInstance) string {
	if v == nil {
		return "it does not exist"
	}
	phase := string(v.Status.Phase)
	if v.Status.Phase == vmi.PhaseUnset {
		phase = "in no phase yet"
	}
	out := "it was last " + phase
	if r := reason(&v.Status); r != "" {
		out += " (" + r + ")"
	}
	return out
}

// reason is why the VMI is in its phase, or why it enters no other, or
// "" if nothing says so.
func reason(s *vmi.VirtualMachineInstanceStatus) string {
	if s.Reason != "" {
		return s.Reason
	}
	for _, t := range []vmi.ConditionType{vmi.ConditionSynchronized, vmi.ConditionPodScheduled, vmi.ConditionReady} {
		c := s.Condition(t)
		if c == nil || c.Status != corev1.ConditionFalse || c.Reason == "" {
			continue
		}
		if c.Message == "" {
			return c.Reason
		}
		return c.Reason + ": " + c.Message
	}
	return ""
}
