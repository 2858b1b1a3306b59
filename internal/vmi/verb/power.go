package verb

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// power are the verbs that start and stop VMs.
var power = []Verb{
	{Resource: VMs, Subresource: "start", Method: Put, Code: accepted, Role: Edit, Body: Options, Reads: []Source{VM, VMI}, Decide: start},
	{Resource: VMs, Subresource: "stop", Method: Put, Code: accepted, Role: Edit, Body: Options, Reads: []Source{VM, VMI}, Decide: stop},
	{Resource: VMs, Subresource: "restart", Method: Put, Code: accepted, Role: Edit, Body: Options, Reads: []Source{VM, VMI}, Decide: restart},
	{Resource: VMs, Subresource: "migrate", Method: Put, Code: accepted, Role: Migrate, Body: Options, Reads: []Source{VM, VMI}, Decide: migrate},
}

// strategy is the run strategy of the VM: Halted if it says none.
func strategy(v *vmi.VirtualMachine) (vmi.RunStrategy, error) {
	if v.Spec.RunStrategy != nil && v.Spec.Running != nil {
		return "", internal("VM %s has spec.running and spec.runStrategy: remove one", v.Name)
	}
	if s := v.Spec.Strategy(); s != "" {
		return s, nil
	}
	return vmi.RunHalted, nil
}

// runs is the run strategy of the VM that a request with this dryRun is about.
func runs(o Observed, dryRun []string) (vmi.RunStrategy, error) {
	if _, err := dry(dryRun); err != nil {
		return "", err
	}
	if o.VM == nil {
		return "", noVM(o)
	}
	return strategy(o.VM)
}

// ended says that there is no VMI that runs, or will.
func ended(i *vmi.VirtualMachineInstance) bool { return i == nil || i.Status.Phase.Final() }

func is(c *vmi.Condition) bool { return c != nil && c.Status == corev1.ConditionTrue }

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

// queue puts the requests into the VM's queue.
func queue(o Observed, dryRun []string, requests ...vmi.StateChangeRequest) (Plan, error) {
	operations, err := enqueue(o.VM, o.Now, requests...)
	if err != nil {
		return Plan{}, err
	}
	return Plan{Patches: []Patch{patchVM(o.VM, dryRun, operations, ofStatus)}}, nil
}

func start(o Observed) (Plan, error) {
	v, i := o.VM, o.VMI
	switch {
	case v == nil:
		return Plan{}, noVM(o)
	case i != nil && !i.Status.Phase.Final() && i.Status.Phase != vmi.PhaseUnknown && i.Status.Phase != vmi.PhaseUnset:
		return Plan{}, conflict(OfVM, v.Name, "VM is already running")
	case is(condition(v, vmi.ConditionManualRecoveryRequired)):
		return Plan{}, conflict(OfVM, v.Name, "VM recovery required: Volume migration failed; restore its volumes")
	}
	var opts vmi.StartOptions
	if err := decode(o.Body, &opts); err != nil {
		return Plan{}, err
	}
	run, err := runs(o, opts.DryRun)
	if err != nil {
		return Plan{}, err
	}
	begin := vmi.StateChangeRequest{Action: vmi.StartRequest}
	if opts.Paused {
		begin.Data = map[string]string{"paused": "true"}
	}
	requests := []vmi.StateChangeRequest{begin}
	switch run {
	case vmi.RunHalted:
		if !opts.Paused {
			return Plan{Patches: []Patch{patchVM(v, opts.DryRun, setStrategy(v, vmi.RunAlways), "")}}, nil
		}
	case vmi.RunRerunOnFailure, vmi.RunManual:
		if run == vmi.RunRerunOnFailure && i != nil && i.Status.Phase == vmi.PhaseFailed {
			return Plan{}, conflict(OfVM, v.Name, "%s does not support starting VM from failed state; it starts again on its own", run)
		}
		if i != nil && i.Status.Phase.Final() {
			requests = []vmi.StateChangeRequest{stopOf(i), begin}
		}
	case vmi.RunAlways, vmi.RunOnce:
		return Plan{}, conflict(OfVM, v.Name, "%s does not support manual start requests; it starts on its own", run)
	default:
		return Plan{}, nil
	}
	return queue(o, opts.DryRun, requests...)
}

func stop(o Observed) (Plan, error) {
	var opts vmi.StopOptions
	if err := decode(o.Body, &opts); err != nil {
		return Plan{}, err
	}
	if opts.GracePeriod != nil && *opts.GracePeriod > vmi.MostSeconds {
		return Plan{}, bad("gracePeriod has to be less than or equal to %d", vmi.MostSeconds)
	}
	if opts.GracePeriod != nil && *opts.GracePeriod < 0 {
		return Plan{}, bad("gracePeriod has to be greater or equal to 0")
	}
	v, i := o.VM, o.VMI
	run, err := runs(o, opts.DryRun)
	if err != nil {
		return Plan{}, err
	}
	shorter := i != nil && opts.GracePeriod != nil && (i.Spec.TerminationGracePeriodSeconds == nil || *opts.GracePeriod < *i.Spec.TerminationGracePeriodSeconds)
	switch {
	case run == vmi.RunWaitAsReceiver:
		return Plan{}, nil
	case run != vmi.RunAlways && run != vmi.RunOnce && ended(i):
		return Plan{}, conflict(OfVM, v.Name, "VM is not running")
	case run == vmi.RunHalted && !shorter:
		return Plan{}, conflict(OfVM, v.Name, "%s only supports manual stop requests with a shorter graceperiod", run)
	}
	p := Plan{Patches: []Patch{patchVM(v, opts.DryRun, setStrategy(v, vmi.RunHalted), "")}}
	if run != vmi.RunAlways && run != vmi.RunOnce {
		if p, err = queue(o, opts.DryRun, stopOf(i)); err != nil {
			return Plan{}, err
		}
	}
	if to := opts.GracePeriod; !ended(i) && to != nil {
		if from := i.Spec.TerminationGracePeriodSeconds; from == nil || *from != *to {
			p.Patches = append([]Patch{patchVMI(i, opts.DryRun, setGrace(i, from, to), "")}, p.Patches...)
		}
	}
	return p, nil
}

// Restart are the patches by which the verb restarts the VM, whose VMI is i. An error is that
// it is refused.
func Restart(v *vmi.VirtualMachine, i *vmi.VirtualMachineInstance, now time.Time) ([]Patch, error) {
	p, err := restart(Observed{Namespace: v.Namespace, Name: v.Name, VM: v, VMI: i, Now: now})
	return p.Patches, err
}

func restart(o Observed) (Plan, error) {
	var opts vmi.RestartOptions
	if err := decode(o.Body, &opts); err != nil {
		return Plan{}, err
	}
	switch g := opts.GracePeriodSeconds; {
	case g != nil && *g > 0:
		return Plan{}, bad("For force restart, only gracePeriod=0 is supported for now")
	case g != nil && *g < 0:
		return Plan{}, bad("gracePeriod has to be greater or equal to 0")
	}
	v, i := o.VM, o.VMI
	run, err := runs(o, opts.DryRun)
	switch {
	case err != nil:
		return Plan{}, err
	case is(condition(v, vmi.ConditionVolumesChange)):
		return Plan{}, conflict(OfVM, v.Name, "VM recovery required: its volumes are being replaced; try again when they are")
	case run == vmi.RunHalted, run == vmi.RunOnce:
		return Plan{}, conflict(OfVM, v.Name, "RunStategy %s does not support manual restart requests; change spec.runStrategy", run)
	case i == nil && run == vmi.RunAlways:
		return Plan{}, conflict(OfVM, v.Name, "VM is not running: %s; its run strategy is %s, and it starts on its own", vmi.RunHalted, run)
	case i == nil:
		return Plan{}, conflict(OfVM, v.Name, "VM is not running: %s; its run strategy is %s, and start starts it", vmi.RunHalted, run)
	}
	p, err := queue(o, opts.DryRun, stopOf(i), vmi.StateChangeRequest{Action: vmi.StartRequest})
	if err != nil {
		return Plan{}, err
	}
	before, shortest := i.Spec.TerminationGracePeriodSeconds, new(int64(1))
	if opts.GracePeriodSeconds != nil && (before == nil || *before > *shortest) {
		force := patchVMI(i, opts.DryRun, setGrace(i, before, shortest), "")
		force.Undo = setGrace(i, shortest, before)
		p.Patches = append([]Patch{force}, p.Patches...)
	}
	return p, nil
}

func migrate(o Observed) (Plan, error) {
	var opts vmi.MigrateOptions
	if err := decode(o.Body, &opts); err != nil {
		return Plan{}, err
	}
	switch {
	case o.VM == nil:
		return Plan{}, noVM(o)
	case o.VMI == nil:
		return Plan{}, noVMI(o)
	case o.VMI.Status.Phase != vmi.PhaseRunning:
		return Plan{}, conflict(OfVM, o.Name, "VM is not running")
	}
	if _, err := dry(opts.DryRun); err != nil {
		return Plan{}, err
	}
	m := &vmi.VirtualMachineInstanceMigration{
		TypeMeta:   metav1.TypeMeta{APIVersion: vmi.GroupVersion.String(), Kind: vmi.VirtualMachineInstanceMigrations.Kind},
		ObjectMeta: metav1.ObjectMeta{GenerateName: vmi.VerbMigrationNamePrefix, Namespace: o.Namespace},
		Spec:       vmi.VirtualMachineInstanceMigrationSpec{VMIName: o.Name, AddedNodeSelector: opts.AddedNodeSelector},
	}
	return Plan{Migration: m, DryRun: opts.DryRun}, nil
}
