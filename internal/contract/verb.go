package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// verbCase is a call of a verb of a VM or VMI of the name a.
type verbCase struct {
	name string
	// strategy is the run strategy of the VM. "": there is none.
	strategy vmi.RunStrategy
	// vm changes the VM before it is there, and status what its status has then.
	vm     func(*vmi.VirtualMachine)
	status func(*vmi.VirtualMachineStatus)
	// phase is the phase of the VMI. "": there is none.
	phase vmi.Phase
	// with changes the VMI before it is there, except for what is in its status.
	with func(*vmi.VirtualMachineInstance)
	// conditions are those of the VMI that are True.
	conditions []vmi.ConditionType
	// leaves is the node that the VMI is to leave.
	leaves string
	call   func(context.Context, client.VirtualMachines, client.VirtualMachineInstances) error
	// is classifies the error, and words are in it. Nil: there is none.
	is    func(error) bool
	words string
	// becomes is the run strategy after the call ("": as before), and queue the changes
	// that the VM is asked for.
	becomes vmi.RunStrategy
	queue   []vmi.StateChange
}

var dryRun = []string{metav1.DryRunAll}

func start(o vmi.StartOptions) func(context.Context, client.VirtualMachines, client.VirtualMachineInstances) error {
	return func(ctx context.Context, c client.VirtualMachines, _ client.VirtualMachineInstances) error {
		return c.Start(ctx, "a", o)
	}
}

func stop(o vmi.StopOptions) func(context.Context, client.VirtualMachines, client.VirtualMachineInstances) error {
	return func(ctx context.Context, c client.VirtualMachines, _ client.VirtualMachineInstances) error {
		return c.Stop(ctx, "a", o)
	}
}

func restart(o vmi.RestartOptions) func(context.Context, client.VirtualMachines, client.VirtualMachineInstances) error {
	return func(ctx context.Context, c client.VirtualMachines, _ client.VirtualMachineInstances) error {
		return c.Restart(ctx, "a", o)
	}
}

func onVMI(call func(context.Context, client.VirtualMachineInstances) error) func(context.Context, client.VirtualMachines, client.VirtualMachineInstances) error {
	return func(ctx context.Context, _ client.VirtualMachines, c client.VirtualMachineInstances) error {
		return call(ctx, c)
	}
}

func cancel(o vmi.EvacuateCancelOptions) func(context.Context, client.VirtualMachines, client.VirtualMachineInstances) error {
	return onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
		return c.EvacuateCancel(ctx, "a", o)
	})
}

// leaves is an error unless the VMI is to leave the node.
func leaves(ctx context.Context, c client.VirtualMachineInstances, node string) error {
	v, err := c.Get(ctx, "a", metav1.GetOptions{})
	if err == nil && v.Status.EvacuationNodeName != node {
		err = fmt.Errorf("it is to leave %q, and not %q", v.Status.EvacuationNodeName, node)
	}
	return err
}

// expand expands a VM that is not stored.
func expand(change func(*vmi.VirtualMachine)) func(context.Context, client.VirtualMachines, client.VirtualMachineInstances) error {
	return func(ctx context.Context, c client.VirtualMachines, _ client.VirtualMachineInstances) error {
		always := vmi.RunAlways
		m := &vmi.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
		m.Spec.RunStrategy = &always
		m.Spec.Template = &vmi.VirtualMachineInstanceTemplateSpec{Spec: vmitest.New().Spec}
		change(m)
		got, err := c.ExpandSpecOf(ctx, m)
		if err == nil && (got.Name != "b" || got.Spec.Template == nil) {
			err = fmt.Errorf("the answer is not what was given: %+v", got)
		}
		return err
	}
}

func migrate(o vmi.MigrateOptions) func(context.Context, client.VirtualMachines, client.VirtualMachineInstances) error {
	return func(ctx context.Context, c client.VirtualMachines, _ client.VirtualMachineInstances) error {
		return c.Migrate(ctx, "a", o)
	}
}

func pause(o vmi.PauseOptions) func(context.Context, client.VirtualMachines, client.VirtualMachineInstances) error {
	return onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error { return c.Pause(ctx, "a", o) })
}

func unpause(o vmi.UnpauseOptions) func(context.Context, client.VirtualMachines, client.VirtualMachineInstances) error {
	return onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error { return c.Unpause(ctx, "a", o) })
}

func forwardVM(ctx context.Context, c client.VirtualMachines, _ client.VirtualMachineInstances) error {
	_, err := c.PortForward("a")(ctx, "tcp", ":80")
	return err
}

// vmCondition gives a VM a condition that is True.
func vmCondition(t vmi.ConditionType) func(*vmi.VirtualMachineStatus) {
	return func(s *vmi.VirtualMachineStatus) {
		s.Conditions = append(s.Conditions, vmi.Condition{Type: t, Status: corev1.ConditionTrue, Reason: "Test"})
	}
}

// queued gives a VM a change that waits.
func queued(s *vmi.VirtualMachineStatus) {
	s.StateChangeRequests = []vmi.StateChangeRequest{{Action: vmi.StartRequest}}
}

var unknown = []string{"Some"}

// refusals are verbs of VMs and VMIs that are refused for what is asked, or for what the
// objects are.
var refusals = []verbCase{
	{name: "start with an unknown dryRun", strategy: vmi.RunHalted, call: start(vmi.StartOptions{DryRun: unknown}), is: apierrors.IsBadRequest, words: "dryRun"},
	{name: "start of one whose volumes are to be restored", strategy: vmi.RunHalted, status: vmCondition(vmi.ConditionManualRecoveryRequired), call: start(vmi.StartOptions{}),
		is: apierrors.IsConflict, words: "VM recovery required"},
	{name: "start of one that is being started", strategy: vmi.RunManual, status: queued, call: start(vmi.StartOptions{}), queue: []vmi.StateChange{vmi.StartRequest},
		is: apierrors.IsConflict, words: "stop/start already underway"},
	{name: "stop with a negative grace period", strategy: vmi.RunAlways, phase: vmi.PhaseRunning, call: stop(vmi.StopOptions{GracePeriod: new(int64(-1))}),
		is: apierrors.IsBadRequest, words: "gracePeriod has to be greater or equal to 0"},
	{name: "stop with an unknown dryRun", strategy: vmi.RunAlways, phase: vmi.PhaseRunning, call: stop(vmi.StopOptions{DryRun: unknown}), is: apierrors.IsBadRequest, words: "dryRun"},
	{name: "stop of one that is halted and off", strategy: vmi.RunHalted, call: stop(vmi.StopOptions{}), is: apierrors.IsConflict, words: "VM is not running"},
	{name: "stop of one that is being started", strategy: vmi.RunManual, phase: vmi.PhaseRunning,
		status: queued, call: stop(vmi.StopOptions{}), queue: []vmi.StateChange{vmi.StopRequest}},
	{name: "stop of a receiver", strategy: vmi.RunWaitAsReceiver, call: stop(vmi.StopOptions{})},
	{name: "restart with a negative grace period", strategy: vmi.RunAlways, phase: vmi.PhaseRunning, call: restart(vmi.RestartOptions{GracePeriodSeconds: new(int64(-1))}),
		is: apierrors.IsBadRequest, words: "gracePeriod has to be greater or equal to 0"},
	{name: "restart with an unknown dryRun", strategy: vmi.RunAlways, phase: vmi.PhaseRunning,
		call: restart(vmi.RestartOptions{DryRun: unknown}), is: apierrors.IsBadRequest, words: "dryRun"},
	{name: "restart of one that runs once", strategy: vmi.RunOnce, phase: vmi.PhaseRunning, call: restart(vmi.RestartOptions{}),
		is: apierrors.IsConflict, words: "Once does not support manual restart requests"},
	{name: "restart of one whose volumes are replaced", strategy: vmi.RunAlways, phase: vmi.PhaseRunning,
		status: vmCondition(vmi.ConditionVolumesChange), call: restart(vmi.RestartOptions{}),
		is: apierrors.IsConflict, words: "VM recovery required"},
	{name: "restart of one that is being started", strategy: vmi.RunAlways, phase: vmi.PhaseRunning, status: queued,
		call: restart(vmi.RestartOptions{}), queue: []vmi.StateChange{vmi.StartRequest},
		is: apierrors.IsConflict, words: "stop/start already underway"},
	{name: "restart of no VM", call: restart(vmi.RestartOptions{}), is: apierrors.IsNotFound, words: `virtualmachine.kubevirt.io "a" not found`},
	{name: "dry migration of one that runs", strategy: vmi.RunAlways, phase: vmi.PhaseRunning, call: migrate(vmi.MigrateOptions{DryRun: dryRun})},
	{name: "migration with an unknown dryRun", strategy: vmi.RunAlways, phase: vmi.PhaseRunning, call: migrate(vmi.MigrateOptions{DryRun: unknown}),
		is: apierrors.IsBadRequest, words: "dryRun"},
	{name: "migration of one without a VMI", strategy: vmi.RunManual, call: migrate(vmi.MigrateOptions{}),
		is: apierrors.IsNotFound, words: `virtualmachineinstance.kubevirt.io "a" not found`},
	{name: "migration of no VM", phase: vmi.PhaseRunning, call: migrate(vmi.MigrateOptions{}), is: apierrors.IsNotFound, words: `virtualmachine.kubevirt.io "a" not found`},
	{name: "expansion of one with an instance type", strategy: vmi.RunHalted, vm: func(m *vmi.VirtualMachine) { m.Spec.Instancetype = &vmi.InstancetypeMatcher{Name: "small"} },
		call: func(ctx context.Context, c client.VirtualMachines, _ client.VirtualMachineInstances) error {
			_, err := c.ExpandSpec(ctx, "a")
			return err
		}, is: apierrors.IsInternalError, words: "VirtualMachineClusterInstancetype small, which spec.instancetype names, does not exist"},
	{name: "expansion of no VM", call: func(ctx context.Context, c client.VirtualMachines, _ client.VirtualMachineInstances) error {
		_, err := c.ExpandSpec(ctx, "a")
		return err
	}, is: apierrors.IsNotFound, words: `virtualmachine.kubevirt.io "a" not found`},
	{name: "expansion of one with an instance type that is not stored", call: expand(func(m *vmi.VirtualMachine) { m.Spec.Instancetype = &vmi.InstancetypeMatcher{Name: "small"} }),
		is: apierrors.IsBadRequest, words: "VirtualMachineClusterInstancetype small, which spec.instancetype names, does not exist"},
	{name: "ports of a VM whose VMI is another's", strategy: vmi.RunAlways, phase: vmi.PhaseRunning, status: func(s *vmi.VirtualMachineStatus) { s.Created = true }, call: forwardVM,
		is: apierrors.IsInternalError, words: "is not of VM a"},
	{name: "ports of a VM that has not made its VMI", strategy: vmi.RunAlways, phase: vmi.PhaseRunning, call: forwardVM, is: apierrors.IsConflict, words: "VMI is not started"},
	{name: "ports of no VM", call: forwardVM, is: apierrors.IsNotFound, words: `virtualmachine.kubevirt.io "a" not found`},

	{name: "pause with an unknown dryRun", phase: vmi.PhaseRunning, call: pause(vmi.PauseOptions{DryRun: unknown}), is: apierrors.IsBadRequest, words: "dryRun"},
	{name: "dry pause", phase: vmi.PhaseRunning, call: pause(vmi.PauseOptions{DryRun: dryRun})},
	{name: "unpause with an unknown dryRun", phase: vmi.PhaseRunning, call: unpause(vmi.UnpauseOptions{DryRun: unknown}), is: apierrors.IsBadRequest, words: "dryRun"},
	{name: "dry unpause", phase: vmi.PhaseRunning, conditions: []vmi.ConditionType{vmi.ConditionPaused}, call: unpause(vmi.UnpauseOptions{DryRun: dryRun})},
	{name: "unpause of one that does not run", phase: vmi.PhaseScheduled, call: unpause(vmi.UnpauseOptions{}), is: apierrors.IsConflict, words: "VMI is not running"},
	{name: "unpause during a snapshot", strategy: vmi.RunAlways, phase: vmi.PhaseRunning, conditions: []vmi.ConditionType{vmi.ConditionPaused},
		status: func(s *vmi.VirtualMachineStatus) { s.SnapshotInProgress = new("snapshot") }, call: unpause(vmi.UnpauseOptions{}),
		is: apierrors.IsConflict, words: "VM snapshot is in progress"},
	{name: "unpause of no VMI", call: unpause(vmi.UnpauseOptions{}), is: apierrors.IsNotFound, words: `virtualmachineinstance.kubevirt.io "a" not found`},
	{name: "soft reboot without ACPI and agent", phase: vmi.PhaseRunning, with: func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Features = &vmi.Features{ACPI: vmi.FeatureState{Enabled: new(false)}}
	}, call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error { return c.SoftReboot(ctx, "a") }),
		is: apierrors.IsConflict, words: "VMI neither have the agent connected nor the ACPI feature enabled"},
	{name: "soft reboot of one that does not run", phase: vmi.PhaseScheduled,
		call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error { return c.SoftReboot(ctx, "a") }),
		is:   apierrors.IsConflict, words: "VM is not running"},
	{name: "reset of one that has ended", phase: vmi.PhaseSucceeded, call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error { return c.Reset(ctx, "a") }),
		is: apierrors.IsBadRequest, words: "Failed to reset non-running VMI with phase Succeeded"},
	{name: "reset of no VMI", call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error { return c.Reset(ctx, "a") }), is: apierrors.IsNotFound},
	{name: "unfreeze of one that does not run", phase: vmi.PhaseScheduling,
		call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error { return c.Unfreeze(ctx, "a") }),
		is:   apierrors.IsConflict, words: "VMI is not running"},
	{name: "file systems where no agent is", phase: vmi.PhaseRunning,
		call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
			_, err := c.FileSystems(ctx, "a")
			return err
		}),
		is: apierrors.IsConflict, words: "VMI does not have guest agent connected"},
	{name: "the guest of no VMI", call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
		_, err := c.GuestInfo(ctx, "a")
		return err
	}), is: apierrors.IsNotFound},
	{name: "evacuation with an unknown dryRun", phase: vmi.PhaseRunning, leaves: "gone", call: cancel(vmi.EvacuateCancelOptions{EvacuationNodeName: "gone", DryRun: unknown}),
		is: apierrors.IsBadRequest, words: "dryRun"},
	{name: "evacuation of a VM whose VMI is another's", strategy: vmi.RunAlways, phase: vmi.PhaseRunning, status: func(s *vmi.VirtualMachineStatus) { s.Created = true },
		call: func(ctx context.Context, c client.VirtualMachines, _ client.VirtualMachineInstances) error {
			return c.EvacuateCancel(ctx, "a", vmi.EvacuateCancelOptions{})
		}, is: apierrors.IsInternalError, words: "is not of VM a"},
	{name: "screenshot of one without graphics", phase: vmi.PhaseRunning, with: func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.AutoattachGraphicsDevice = new(false) },
		call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
			_, err := c.Screenshot(ctx, "a")
			return err
		}),
		is: apierrors.IsBadRequest, words: "No graphics devices are present."},
	{name: "screenshot of one that does not run", phase: vmi.PhaseScheduled,
		call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
			_, err := c.Screenshot(ctx, "a")
			return err
		}),
		is: apierrors.IsBadRequest, words: "VMI is not running"},
	{name: "screen of one that does not run", phase: vmi.PhaseScheduled, call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
		_, err := c.VNC(ctx, "a", client.VNCOptions{})
		return err
	}), is: apierrors.IsBadRequest, words: "VMI is not running"},
	{name: "ports of no VMI", call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
		_, err := c.PortForward("a")(ctx, "tcp", ":80")
		return err
	}), is: apierrors.IsNotFound, words: `virtualmachineinstance.kubevirt.io "a" not found`},
}

// verbCases are what every server of the verbs answers, without a guest that runs.
var verbCases = []verbCase{
	{name: "start of a halted VM", strategy: vmi.RunHalted, call: start(vmi.StartOptions{}), becomes: vmi.RunAlways},
	{name: "dry start of a halted VM", strategy: vmi.RunHalted, call: start(vmi.StartOptions{DryRun: dryRun})},
	{name: "start of a halted VM, paused", strategy: vmi.RunHalted, call: start(vmi.StartOptions{Paused: true}), queue: []vmi.StateChange{vmi.StartRequest}},
	{name: "start of a VM that is started by hand", strategy: vmi.RunManual, call: start(vmi.StartOptions{}), queue: []vmi.StateChange{vmi.StartRequest}},
	{name: "start of one whose VMI has ended", strategy: vmi.RunManual, phase: vmi.PhaseSucceeded,
		call: start(vmi.StartOptions{}), queue: []vmi.StateChange{vmi.StopRequest, vmi.StartRequest}},
	{name: "start of one that has failed", strategy: vmi.RunRerunOnFailure, phase: vmi.PhaseFailed, call: start(vmi.StartOptions{}),
		is: apierrors.IsConflict, words: "RerunOnFailure does not support starting VM from failed state"},
	{name: "start of one that runs", strategy: vmi.RunManual, phase: vmi.PhaseRunning, call: start(vmi.StartOptions{}), is: apierrors.IsConflict, words: "VM is already running"},
	{name: "start of one that is being scheduled", strategy: vmi.RunAlways, phase: vmi.PhaseScheduling,
		call: start(vmi.StartOptions{}), is: apierrors.IsConflict, words: "VM is already running"},
	{name: "start of one that starts by itself", strategy: vmi.RunAlways, call: start(vmi.StartOptions{}),
		is: apierrors.IsConflict, words: "Always does not support manual start requests"},
	{name: "start of no VM", call: start(vmi.StartOptions{}), is: apierrors.IsNotFound, words: `virtualmachine.kubevirt.io "a" not found`},

	{name: "stop of a VM that runs", strategy: vmi.RunAlways, phase: vmi.PhaseRunning, call: stop(vmi.StopOptions{}), becomes: vmi.RunHalted},
	{name: "stop of one that fails again and again", strategy: vmi.RunAlways, call: stop(vmi.StopOptions{}), becomes: vmi.RunHalted},
	{name: "dry stop", strategy: vmi.RunAlways, phase: vmi.PhaseRunning, call: stop(vmi.StopOptions{DryRun: dryRun})},
	{name: "stop of one that was started by hand", strategy: vmi.RunManual, phase: vmi.PhaseRunning, call: stop(vmi.StopOptions{}), queue: []vmi.StateChange{vmi.StopRequest}},
	{name: "stop of one that is off", strategy: vmi.RunManual, call: stop(vmi.StopOptions{}), is: apierrors.IsConflict, words: "VM is not running"},
	{name: "stop of one that is stopping", strategy: vmi.RunHalted, phase: vmi.PhaseRunning, call: stop(vmi.StopOptions{}),
		is: apierrors.IsConflict, words: "Halted only supports manual stop requests with a shorter graceperiod"},
	{name: "faster stop of one that is stopping", strategy: vmi.RunHalted, phase: vmi.PhaseRunning,
		with: func(v *vmi.VirtualMachineInstance) { v.Spec.TerminationGracePeriodSeconds = new(int64(600)) },
		call: stop(vmi.StopOptions{GracePeriod: new(int64(0))}), queue: []vmi.StateChange{vmi.StopRequest}},
	{name: "stop of no VM", call: stop(vmi.StopOptions{}), is: apierrors.IsNotFound, words: `virtualmachine.kubevirt.io "a" not found`},

	{name: "restart", strategy: vmi.RunAlways, phase: vmi.PhaseRunning, call: restart(vmi.RestartOptions{}), queue: []vmi.StateChange{vmi.StopRequest, vmi.StartRequest}},
	{name: "restart at once", strategy: vmi.RunAlways, phase: vmi.PhaseRunning, call: restart(vmi.RestartOptions{GracePeriodSeconds: new(int64(0))}),
		queue: []vmi.StateChange{vmi.StopRequest, vmi.StartRequest}},
	{name: "restart after a while", strategy: vmi.RunAlways, phase: vmi.PhaseRunning, call: restart(vmi.RestartOptions{GracePeriodSeconds: new(int64(1))}),
		is: apierrors.IsBadRequest, words: "only gracePeriod=0 is supported"},
	{name: "restart of one that is halted", strategy: vmi.RunHalted, call: restart(vmi.RestartOptions{}),
		is: apierrors.IsConflict, words: "Halted does not support manual restart requests"},
	{name: "restart of one that is off", strategy: vmi.RunManual, call: restart(vmi.RestartOptions{}), is: apierrors.IsConflict, words: "VM is not running"},
	{name: "migration of one that is off", strategy: vmi.RunManual, phase: vmi.PhaseScheduling, call: migrate(vmi.MigrateOptions{}),
		is: apierrors.IsConflict, words: "VM is not running"},
	{name: "ports of a VM that is off", strategy: vmi.RunManual, call: func(ctx context.Context, c client.VirtualMachines, _ client.VirtualMachineInstances) error {
		_, err := c.PortForward("a")(ctx, "tcp", ":80")
		return err
	}, is: apierrors.IsConflict, words: "VMI is not started"},

	{name: "pause of no VMI", call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
		return c.Pause(ctx, "a", vmi.PauseOptions{})
	}),
		is: apierrors.IsNotFound, words: `virtualmachineinstance.kubevirt.io "a" not found`},
	{name: "pause of one that does not run", phase: vmi.PhaseScheduled,
		call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
			return c.Pause(ctx, "a", vmi.PauseOptions{})
		}),
		is: apierrors.IsConflict, words: "VM is not running"},
	{name: "pause of one that is paused", phase: vmi.PhaseRunning, conditions: []vmi.ConditionType{vmi.ConditionPaused},
		call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
			return c.Pause(ctx, "a", vmi.PauseOptions{})
		}), is: apierrors.IsConflict, words: "VMI is already paused"},
	{name: "pause of one with a probe", phase: vmi.PhaseRunning, with: func(v *vmi.VirtualMachineInstance) {
		v.Spec.LivenessProbe = &vmi.Probe{ProbeHandler: vmi.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}}
	}, call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
		return c.Pause(ctx, "a", vmi.PauseOptions{})
	}),
		is: apierrors.IsForbidden, words: "LivenessProbe is not supported"},
	{name: "unpause of one that is not paused", phase: vmi.PhaseRunning,
		call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
			return c.Unpause(ctx, "a", vmi.UnpauseOptions{})
		}),
		is: apierrors.IsConflict, words: "VMI is not paused"},
	{name: "soft reboot of one that is paused", phase: vmi.PhaseRunning, conditions: []vmi.ConditionType{vmi.ConditionPaused},
		call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error { return c.SoftReboot(ctx, "a") }), is: apierrors.IsConflict, words: "VMI is paused"},
	{name: "reset of one that does not run", phase: vmi.PhaseScheduling,
		call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error { return c.Reset(ctx, "a") }), is: apierrors.IsBadRequest},
	{name: "freeze of one that does not run", phase: vmi.PhaseScheduling,
		call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
			return c.Freeze(ctx, "a", client.FreezeOptions{})
		}),
		is: apierrors.IsConflict, words: "VM is not running"},
	{name: "users where no agent is", phase: vmi.PhaseRunning, call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
		_, err := c.Users(ctx, "a")
		return err
	}),
		is: apierrors.IsConflict, words: "VMI does not have guest agent connected"},
	{name: "the guest of one that does not run", phase: vmi.PhaseScheduling,
		call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
			_, err := c.GuestInfo(ctx, "a")
			return err
		}),
		is: apierrors.IsConflict, words: "VMI is not running"},
	{name: "evacuation of no VMI", call: cancel(vmi.EvacuateCancelOptions{}), is: apierrors.IsNotFound, words: `virtualmachineinstance.kubevirt.io "a" not found`},
	{name: "evacuation of one that need not leave", phase: vmi.PhaseRunning, call: cancel(vmi.EvacuateCancelOptions{EvacuationNodeName: "gone"})},
	{name: "evacuation of one that is to leave another node", phase: vmi.PhaseRunning, leaves: "gone",
		call: cancel(vmi.EvacuateCancelOptions{EvacuationNodeName: "other"}), is: apierrors.IsConflict, words: "it is to leave node gone"},
	{name: "evacuation of one that is to leave", phase: vmi.PhaseRunning, leaves: "gone", call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
		o := vmi.EvacuateCancelOptions{EvacuationNodeName: "gone", DryRun: dryRun}
		if err := errors.Join(c.EvacuateCancel(ctx, "a", o), leaves(ctx, c, "gone")); err != nil {
			return err
		}
		o.DryRun = nil
		return errors.Join(c.EvacuateCancel(ctx, "a", o), leaves(ctx, c, ""))
	})},
	{name: "evacuation of a VM that is off", strategy: vmi.RunManual, call: func(ctx context.Context, c client.VirtualMachines, _ client.VirtualMachineInstances) error {
		return c.EvacuateCancel(ctx, "a", vmi.EvacuateCancelOptions{})
	}, is: apierrors.IsConflict, words: "VMI is not started"},
	{name: "evacuation of no VM", call: func(ctx context.Context, c client.VirtualMachines, _ client.VirtualMachineInstances) error {
		return c.EvacuateCancel(ctx, "a", vmi.EvacuateCancelOptions{})
	}, is: apierrors.IsNotFound, words: `virtualmachine.kubevirt.io "a" not found`},
	{name: "expansion of a VM that is not stored", call: expand(func(*vmi.VirtualMachine) {})},
	{name: "expansion of one of another namespace", call: expand(func(m *vmi.VirtualMachine) { m.Namespace = "elsewhere" }),
		is: apierrors.IsBadRequest, words: "VM namespace must be empty or"},
	{name: "expansion of one without a template", call: expand(func(m *vmi.VirtualMachine) { m.Spec.Template = nil }),
		is: apierrors.IsBadRequest, words: "Object is not a valid VirtualMachine"},

	{name: "screenshot of no VMI", call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
		_, err := c.Screenshot(ctx, "a")
		return err
	}), is: apierrors.IsNotFound},

	{name: "console of no VMI", call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
		_, err := c.Console(ctx, "a")
		return err
	}),
		is: apierrors.IsNotFound, words: `virtualmachineinstance.kubevirt.io "a" not found`},
	{name: "console of one that does not run", phase: vmi.PhaseScheduling,
		call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
			_, err := c.Console(ctx, "a")
			return err
		}),
		is: apierrors.IsBadRequest, words: "VMI is not running"},
	{name: "console of one that has failed", phase: vmi.PhaseFailed, call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
		_, err := c.Console(ctx, "a")
		return err
	}),
		is: apierrors.IsConflict, words: "VMI is in failed status"},
	{name: "console of one without a serial port", phase: vmi.PhaseRunning, with: func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.AutoattachSerialConsole = new(false) },
		call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
			_, err := c.Console(ctx, "a")
			return err
		}),
		is: apierrors.IsConflict, words: "No serial consoles are present."},
	{name: "screen of one without graphics", phase: vmi.PhaseRunning, with: func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.AutoattachGraphicsDevice = new(false) },
		call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
			_, err := c.VNC(ctx, "a", client.VNCOptions{})
			return err
		}), is: apierrors.IsBadRequest, words: "No graphics devices are present."},
	{name: "ports of one without a network", phase: vmi.PhaseRunning, call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
		_, err := c.PortForward("a")(ctx, "tcp", ":80")
		return err
	}),
		is: apierrors.IsBadRequest, words: "no network interfaces are present"},
	{name: "ports of one that is paused", phase: vmi.PhaseRunning, conditions: []vmi.ConditionType{vmi.ConditionPaused},
		call: onVMI(func(ctx context.Context, c client.VirtualMachineInstances) error {
			_, err := c.PortForward("a")(ctx, "udp", ":53")
			return err
		}), is: apierrors.IsConflict, words: "VMI is paused"},
}

// RunVerbs runs the tests of the verbs of VMs and VMIs that need no guest, in a namespace
// without objects of the name a.
func RunVerbs(t *testing.T, c *client.Client, namespace string) {
	for _, tt := range slices.Concat(verbCases, refusals) {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, suite{c, namespace}) })
	}
}

func (tt verbCase) run(t *testing.T, s suite) {
	ctx := t.Context()
	vmis := s.c.VirtualMachineInstances(s.namespace)
	if tt.strategy != "" {
		m := s.vm("a")
		m.Spec.RunStrategy = &tt.strategy
		if tt.vm != nil {
			tt.vm(m)
		}
		s.withStatus(t, s.created(t, m), tt.status)
		defer func() { require.NoError(t, s.vms().Delete(context.WithoutCancel(ctx), "a", metav1.DeleteOptions{})) }()
	}
	if tt.phase != "" {
		s.instance(t, tt)
		defer func() { require.NoError(t, vmis.Delete(context.WithoutCancel(ctx), "a", metav1.DeleteOptions{})) }()
	}
	err := tt.call(ctx, s.vms(), vmis)
	if tt.is == nil {
		require.NoError(t, err)
	} else {
		require.True(t, tt.is(err), "%v", err)
		require.ErrorContains(t, err, tt.words)
	}
	if tt.strategy == "" {
		return
	}
	m, err := s.vms().Get(ctx, "a", metav1.GetOptions{})
	require.NoError(t, err)
	want := tt.becomes
	if want == "" {
		want = tt.strategy
	}
	require.Equal(t, want, m.Spec.Strategy())
	var queue []vmi.StateChange
	for _, r := range m.Status.StateChangeRequests {
		queue = append(queue, r.Action)
	}
	require.Equal(t, tt.queue, queue)
}

// withStatus gives the VM the status. Nil: none.
func (s suite) withStatus(t *testing.T, m *vmi.VirtualMachine, status func(*vmi.VirtualMachineStatus)) {
	t.Helper()
	if status == nil {
		return
	}
	now := m.DeepCopy()
	status(&now.Status)
	_, err := client.WriteStatus(t.Context(), s.vms(), m, now)
	require.NoError(t, err)
}

// instance makes the VMI of the case.
func (s suite) instance(t *testing.T, tt verbCase) {
	t.Helper()
	v := vmitest.New(vmitest.WithName("a"))
	v.ObjectMeta = metav1.ObjectMeta{Namespace: s.namespace, Name: "a"}
	if tt.with != nil {
		tt.with(v)
	}
	vmis := s.c.VirtualMachineInstances(s.namespace)
	v, err := vmis.Create(t.Context(), v, metav1.CreateOptions{})
	require.NoError(t, err)
	now := v.DeepCopy()
	now.Status.SetPhase(tt.phase, metav1.Now())
	for _, c := range tt.conditions {
		now.Status.SetCondition(vmi.Condition{Type: c, Status: corev1.ConditionTrue, Reason: "Test"}, metav1.Now())
	}
	now.Status.EvacuationNodeName = tt.leaves
	_, err = client.WriteStatus(t.Context(), vmis, v, now)
	require.NoError(t, err)
}
