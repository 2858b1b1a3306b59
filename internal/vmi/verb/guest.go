package verb

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/podvisor/podvisor/vmi"
)

const softReboot = "softreboot"

// guest are the calls of launchers. The subresource is the name of the call.
var guest = []Verb{
	{Resource: VMIs, Subresource: "pause", Method: Put, Code: done, Role: Edit, Body: Options, Reads: []Source{VMI}, Decide: pause},
	{Resource: VMIs, Subresource: "unpause", Method: Put, Code: done, Role: Edit, Body: Options, Reads: []Source{VM, VMI}, Decide: unpause},
	{Resource: VMIs, Subresource: "freeze", Method: Put, Code: done, Role: Edit, Body: Options, Reads: []Source{VMI}, Agent: true, Decide: freeze},
	{Resource: VMIs, Subresource: "unfreeze", Method: Put, Code: done, Role: Edit, Reads: []Source{VMI}, Agent: true, Decide: unfreeze},
	{Resource: VMIs, Subresource: softReboot, Method: Put, Code: done, Role: Edit, Reads: []Source{VMI}, Agent: true, Once: true, Decide: reboot},
	{Resource: VMIs, Subresource: "reset", Method: Put, Code: done, Role: Edit, Reads: []Source{VMI}, Once: true, Decide: reset},
	question("guestosinfo", func() any { return new(vmi.VirtualMachineInstanceGuestAgentInfo) }).inWords(),
	question("userlist", func() any { return new(vmi.VirtualMachineInstanceGuestOSUserList) }),
	question("filesystemlist", func() any { return new(vmi.VirtualMachineInstanceFileSystemList) }),
}

// question is a verb that the guest's agent answers with what answer makes.
func question(name string, answer func() any) Verb {
	return Verb{Resource: VMIs, Subresource: name, Method: Get, Code: done, Role: View, Reads: []Source{VMI}, Agent: true, Answer: answer, Decide: ask}
}

func (v Verb) inWords() Verb {
	v.Words = true
	return v
}

// call is the plan that calls the launcher.
func call(options any) (Plan, error) { return Plan{Call: &Call{Options: options}}, nil }

// running says whether the VMI runs. What is the word for it in the refusal.
func running(o Observed, what string) error {
	switch {
	case o.VMI == nil:
		return noVMI(o)
	case o.VMI.Status.Phase != vmi.PhaseRunning:
		return conflict(OfVMI, o.Name, "%s is not running", what)
	}
	return nil
}

func pause(o Observed) (Plan, error) {
	var opts vmi.PauseOptions
	if err := decode(o.Body, &opts); err != nil {
		return Plan{}, err
	}
	dryRun, err := dry(opts.DryRun)
	if err != nil {
		return Plan{}, err
	}
	if err := running(o, "VM"); err != nil {
		return Plan{}, err
	}
	switch v := o.VMI; {
	case v.Spec.LivenessProbe != nil && v.Spec.LivenessProbe.GuestAgentPing == nil:
		return Plan{}, apierrors.NewForbidden(OfVMI, v.Name, errors.New("Pausing VMIs with a non-GuestAgentPing LivenessProbe is not supported")) //nolint:staticcheck // clients match it
	case v.Status.Condition(vmi.ConditionPaused) != nil:
		return Plan{}, conflict(OfVMI, v.Name, "VMI is already paused")
	case dryRun:
		return Plan{}, nil
	}
	return call(nil)
}

func unpause(o Observed) (Plan, error) {
	var opts vmi.UnpauseOptions
	if err := decode(o.Body, &opts); err != nil {
		return Plan{}, err
	}
	dryRun, err := dry(opts.DryRun)
	switch {
	case err != nil:
		return Plan{}, err
	case o.VMI == nil:
		return Plan{}, noVMI(o)
	case o.VM != nil && o.VM.Status.SnapshotInProgress != nil:
		return Plan{}, conflict(OfVM, o.Name, "VM snapshot is in progress; try again when it is done")
	}
	if err := running(o, "VMI"); err != nil {
		return Plan{}, err
	}
	switch {
	case o.VMI.Status.Condition(vmi.ConditionPaused) == nil:
		return Plan{}, conflict(OfVMI, o.Name, "VMI is not paused")
	case dryRun:
		return Plan{}, nil
	}
	return call(nil)
}

func freeze(o Observed) (Plan, error) {
	if err := running(o, "VM"); err != nil {
		return Plan{}, err
	}
	var opts vmi.FreezeUnfreezeTimeout
	if err := decode(o.Body, &opts); err != nil {
		return Plan{}, err
	}
	switch t := opts.UnfreezeTimeout; {
	case t == nil:
		return Plan{}, bad("Unfreeze timeout in freeze request is not set: set unfreezeTimeout, as in \"10s\"")
	case t.Duration < 0:
		return Plan{}, bad("unfreezeTimeout %s is negative", t.Duration)
	}
	return call(opts)
}

func unfreeze(o Observed) (Plan, error) {
	if err := running(o, "VMI"); err != nil {
		return Plan{}, err
	}
	return call(nil)
}

func reset(o Observed) (Plan, error) {
	if o.VMI == nil {
		return Plan{}, noVMI(o)
	}
	if p := o.VMI.Status.Phase; p != vmi.PhaseRunning && p != vmi.PhaseScheduled {
		return Plan{}, bad("Failed to reset non-running VMI with phase %s: Unable to connect to VirtualMachineInstance because phase is %s instead of Running or Scheduled", p, p)
	}
	return call(nil)
}

func reboot(o Observed) (Plan, error) {
	if err := running(o, "VM"); err != nil {
		return Plan{}, err
	}
	f := o.VMI.Spec.Domain.Features
	acpi := f == nil || f.ACPI.Enabled == nil || *f.ACPI.Enabled
	switch {
	case is(o.VMI.Status.Condition(vmi.ConditionPaused)):
		return Plan{}, conflict(OfVMI, o.Name, "VMI is paused")
	case o.VMI.Status.Condition(vmi.ConditionAgentConnected) == nil && !acpi:
		return Plan{}, conflict(OfVMI, o.Name, "%s", noReboot)
	}
	return call(nil)
}

// ask asks the agent of the guest.
func ask(o Observed) (Plan, error) {
	if err := running(o, "VMI"); err != nil {
		return Plan{}, err
	}
	if o.VMI.Status.Condition(vmi.ConditionAgentConnected) == nil {
		return Plan{}, conflict(OfVMI, o.Name, "VMI does not have guest agent connected; install and start qemu-guest-agent in the guest")
	}
	return call(nil)
}
