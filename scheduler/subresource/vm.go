package subresource

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// vm reads the VM of the request.
func (s *Server) vm(ctx context.Context, r *request) (*vmi.VirtualMachine, error) {
	v, err := s.Client.VirtualMachines(r.namespace).Get(ctx, r.name, metav1.GetOptions{})
	if err != nil {
		return nil, found(err, ofVM, r.name)
	}
	return v, nil
}

// vmi reads the VMI of the request.
func (s *Server) vmi(ctx context.Context, r *request) (*vmi.VirtualMachineInstance, error) {
	v, err := s.Client.VirtualMachineInstances(r.namespace).Get(ctx, r.name, metav1.GetOptions{})
	if err != nil {
		return nil, found(err, ofVMI, r.name)
	}
	return v, nil
}

// vmAndVMI reads the VM and its VMI, which may be nil.
func (s *Server) vmAndVMI(ctx context.Context, r *request) (*vmi.VirtualMachine, *vmi.VirtualMachineInstance, error) {
	v, err := s.vm(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	i, err := s.vmi(ctx, r)
	if apierrors.IsNotFound(err) {
		return v, nil, nil
	}
	return v, i, err
}

// strategy is the run strategy of the VM: Halted if it says none.
func strategy(v *vmi.VirtualMachine) (vmi.RunStrategy, error) {
	if v.Spec.RunStrategy != nil && v.Spec.Running != nil {
		return "", apierrors.NewInternalError(errors.New("VM " + v.Name + " has spec.running and spec.runStrategy: remove one"))
	}
	if s := v.Spec.Strategy(); s != "" {
		return s, nil
	}
	return vmi.RunHalted, nil
}

// ended says that there is no VMI that runs, or will.
func ended(i *vmi.VirtualMachineInstance) bool { return i == nil || i.Status.Phase.Final() }

func is(v *vmi.Condition) bool { return v != nil && v.Status == corev1.ConditionTrue }

func condition(v *vmi.VirtualMachine, t vmi.ConditionType) *vmi.Condition {
	for i := range v.Status.Conditions {
		if v.Status.Conditions[i].Type == t {
			return &v.Status.Conditions[i]
		}
	}
	return nil
}

func stopOf(i *vmi.VirtualMachineInstance) vmi.StateChangeRequest {
	return vmi.StateChangeRequest{Action: vmi.StopRequest, UID: &i.UID}
}

func (s *Server) start(ctx context.Context, r *request) (any, error) {
	var o vmi.StartOptions
	malformed := r.body(&o)
	return nil, whileItChanges(r, func() error {
		v, i, err := s.vmAndVMI(ctx, r)
		switch {
		case err != nil:
			return err
		case i != nil && !i.Status.Phase.Final() && i.Status.Phase != vmi.Unknown && i.Status.Phase != vmi.PhaseUnset:
			return conflict(ofVM, v.Name, "VM is already running")
		case is(condition(v, vmi.ConditionManualRecoveryRequired)):
			return conflict(ofVM, v.Name, "VM recovery required: Volume migration failed; restore its volumes")
		case malformed != nil:
			return malformed
		}
		if _, err := dry(o.DryRun); err != nil {
			return err
		}
		run, err := strategy(v)
		if err != nil {
			return err
		}
		begin := vmi.StateChangeRequest{Action: vmi.StartRequest}
		if o.Paused {
			begin.Data = map[string]string{"paused": "true"}
		}
		requests := []vmi.StateChangeRequest{begin}
		switch run {
		case vmi.RunHalted:
			if !o.Paused {
				return s.patchVM(ctx, v, o.DryRun, setStrategy(v, vmi.RunAlways))
			}
		case vmi.RunRerunOnFailure, vmi.RunManual:
			if run == vmi.RunRerunOnFailure && i != nil && i.Status.Phase == vmi.Failed {
				return conflict(ofVM, v.Name, "%s does not support starting VM from failed state; it starts again on its own", run)
			}
			if i != nil && i.Status.Phase.Final() {
				requests = []vmi.StateChangeRequest{stopOf(i), begin}
			}
		case vmi.RunAlways, vmi.RunOnce:
			return conflict(ofVM, v.Name, "%s does not support manual start requests; it starts on its own", run)
		default:
			return nil
		}
		return s.queue(ctx, v, o.DryRun, requests...)
	})
}

// queue puts the requests into the VM's queue.
func (s *Server) queue(ctx context.Context, v *vmi.VirtualMachine, dryRun []string, requests ...vmi.StateChangeRequest) error {
	operations, err := enqueue(v, requests...)
	if err != nil {
		return err
	}
	return s.patchVM(ctx, v, dryRun, operations, "status")
}

func (s *Server) stop(ctx context.Context, r *request) (any, error) {
	var o vmi.StopOptions
	if err := r.body(&o); err != nil {
		return nil, err
	}
	if o.GracePeriod != nil && *o.GracePeriod < 0 {
		return nil, bad("gracePeriod has to be greater or equal to 0")
	}
	if _, err := dry(o.DryRun); err != nil {
		return nil, err
	}
	return nil, whileItChanges(r, func() error {
		v, i, err := s.vmAndVMI(ctx, r)
		if err != nil {
			return err
		}
		run, err := strategy(v)
		if err != nil {
			return err
		}
		shorter := i != nil && o.GracePeriod != nil && (i.Spec.TerminationGracePeriodSeconds == nil || *o.GracePeriod < *i.Spec.TerminationGracePeriodSeconds)
		switch {
		case run == vmi.RunWaitAsReceiver:
			return nil
		case run != vmi.RunAlways && run != vmi.RunOnce && ended(i):
			return conflict(ofVM, v.Name, "VM is not running")
		case run == vmi.RunHalted && !shorter:
			return conflict(ofVM, v.Name, "%s only supports manual stop requests with a shorter graceperiod", run)
		}
		// The grace period changes only when nothing refuses the stop any more.
		if !ended(i) && o.GracePeriod != nil {
			from := i.Spec.TerminationGracePeriodSeconds
			if from == nil || *from != *o.GracePeriod {
				if err := s.patchVMI(ctx, i, o.DryRun, setGrace(i, from, o.GracePeriod)); err != nil {
					return found(err, ofVMI, i.Name)
				}
			}
		}
		if run == vmi.RunAlways || run == vmi.RunOnce {
			return s.patchVM(ctx, v, o.DryRun, setStrategy(v, vmi.RunHalted))
		}
		return s.queue(ctx, v, o.DryRun, stopOf(i))
	})
}

func (s *Server) restart(ctx context.Context, r *request) (any, error) {
	var o vmi.RestartOptions
	if err := r.body(&o); err != nil {
		return nil, err
	}
	switch g := o.GracePeriodSeconds; {
	case g != nil && *g > 0:
		return nil, bad("For force restart, only gracePeriod=0 is supported for now")
	case g != nil && *g < 0:
		return nil, bad("gracePeriod has to be greater or equal to 0")
	}
	dryRun, err := dry(o.DryRun)
	if err != nil {
		return nil, err
	}
	return nil, whileItChanges(r, func() error {
		v, i, err := s.vmAndVMI(ctx, r)
		if err != nil {
			return err
		}
		run, err := strategy(v)
		switch {
		case err != nil:
			return err
		case is(condition(v, vmi.ConditionVolumesChange)):
			return conflict(ofVM, v.Name, "VM recovery required: its volumes are being replaced; try again when they are")
		case run == vmi.RunHalted, run == vmi.RunOnce:
			return conflict(ofVM, v.Name, "RunStategy %s does not support manual restart requests; change spec.runStrategy", run)
		case i == nil:
			return conflict(ofVM, v.Name, "VM is not running: %s", vmi.RunHalted)
		}
		operations, err := enqueue(v, stopOf(i), vmi.StateChangeRequest{Action: vmi.StartRequest})
		if err != nil {
			return err
		}
		before, shortest := i.Spec.TerminationGracePeriodSeconds, new(int64(1))
		force := o.GracePeriodSeconds != nil && (before == nil || *before > *shortest)
		if force {
			if err := s.patchVMI(ctx, i, o.DryRun, setGrace(i, before, shortest)); err != nil {
				return found(err, ofVMI, i.Name)
			}
		}
		err = s.patchVM(ctx, v, o.DryRun, operations, "status")
		if err != nil && force && !dryRun {
			if restored := s.patchVMI(context.WithoutCancel(ctx), i, nil, setGrace(i, shortest, before)); restored != nil {
				s.Logger.Warn("cannot restore terminationGracePeriodSeconds", "vmi", i.Namespace+"/"+i.Name, "error", restored)
			}
		}
		return err
	})
}

func (s *Server) migrate(ctx context.Context, r *request) (any, error) {
	var o vmi.MigrateOptions
	if err := r.body(&o); err != nil {
		return nil, err
	}
	v, i, err := s.vmAndVMI(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case i == nil:
		return nil, apierrors.NewNotFound(ofVMI, r.name)
	case i.Status.Phase != vmi.Running:
		return nil, conflict(ofVM, v.Name, "VM is not running")
	}
	return nil, conflict(ofVM, v.Name, "live migration is not supported by this version: stop the VM, and start it on another node")
}
