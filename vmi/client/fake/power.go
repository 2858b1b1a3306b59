package fake

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
)

// The kinds that verbs are of.
var (
	vmKind  = vmi.VirtualMachines.Definition
	vmiKind = vmi.VirtualMachineInstances.Definition
)

// errQueued is the error of a change while another waits.
var errQueued = errors.New("unable to complete request: stop/start already underway")

// active is the VMI of the VM, unless there is none or it has ended.
func (c *call) active() *vmi.VirtualMachineInstance {
	v, err := c.vmi()
	if err != nil || v.Status.Phase.Final() {
		return nil
	}
	return v
}

// strategy is the run strategy of the VM.
func strategy(m *vmi.VirtualMachine) (vmi.RunStrategy, error) {
	if m.Spec.Running != nil && m.Spec.RunStrategy != nil {
		return "", apierrors.NewInternalError(errors.New("running and runStrategy are both set"))
	}
	if s := m.Spec.Strategy(); s != "" {
		return s, nil
	}
	return vmi.RunHalted, nil
}

// run makes the VM run always, or halts it.
func (c *call) run(m *vmi.VirtualMachine, s vmi.RunStrategy, dryRun []string) error {
	if m.Spec.Running != nil {
		return c.set(vmKind, dryRun, s == vmi.RunAlways, "spec", "running")
	}
	return c.set(vmKind, dryRun, s, "spec", "runStrategy")
}

// queue adds the changes to those that wait. A stop alone replaces what waits.
func (c *call) queue(m *vmi.VirtualMachine, dryRun []string, changes ...vmi.StateChangeRequest) error {
	if len(m.Status.StateChangeRequests) > 0 && (len(changes) != 1 || changes[0].Action != vmi.StopRequest) {
		return apierrors.NewInternalError(errQueued)
	}
	err := c.set(vmKind, dryRun, changes, "status", "stateChangeRequests")
	if err == nil && m.Status.StartFailure != nil {
		err = c.set(vmKind, dryRun, nil, "status", "startFailure")
	}
	return err
}

// accepted is the answer of the verbs of VMs.
func accepted(err error) (reply, error) { return reply{code: http.StatusAccepted}, err }

func start(c *call) (reply, error) {
	m, err := c.vm()
	if err != nil {
		return reply{}, err
	}
	v, _ := c.vmi()
	if v.Status.Phase != "" && v.Status.Phase != vmi.Unknown && !v.Status.Phase.Final() {
		return reply{}, c.conflict(vmKind, "VM is already running")
	}
	var opts vmi.StartOptions
	if err := c.options(&opts); err != nil {
		return reply{}, err
	}
	s, err := strategy(m)
	if err != nil {
		return reply{}, err
	}
	begin := vmi.StateChangeRequest{Action: vmi.StartRequest}
	if opts.Paused {
		begin.Data = map[string]string{"paused": "true"}
	}
	switch {
	case s == vmi.RunHalted && opts.Paused:
		return accepted(c.queue(m, opts.DryRun, begin))
	case s == vmi.RunHalted:
		return accepted(c.run(m, vmi.RunAlways, opts.DryRun))
	case s == vmi.RunRerunOnFailure && v.Status.Phase == vmi.Failed:
		return reply{}, c.conflict(vmKind, "RerunOnFailure does not support starting VM from failed state")
	case (s == vmi.RunManual || s == vmi.RunRerunOnFailure) && v.Status.Phase.Final():
		return accepted(c.queue(m, opts.DryRun, ends(v.UID), begin))
	case s == vmi.RunManual || s == vmi.RunRerunOnFailure:
		return accepted(c.queue(m, opts.DryRun, begin))
	case s == vmi.RunAlways || s == vmi.RunOnce:
		return reply{}, c.conflict(vmKind, string(s)+" does not support manual start requests")
	}
	return accepted(nil)
}

// ends is the change that stops the VMI.
func ends(uid types.UID) vmi.StateChangeRequest {
	return vmi.StateChangeRequest{Action: vmi.StopRequest, UID: &uid}
}

func stop(c *call) (reply, error) {
	var opts vmi.StopOptions
	if err := c.options(&opts); err != nil {
		return reply{}, err
	}
	m, err := c.vm()
	if err != nil {
		return reply{}, err
	}
	s, err := strategy(m)
	if err != nil {
		return reply{}, err
	}
	v := c.active()
	shorter := false
	if v != nil && opts.GracePeriod != nil {
		before := v.Spec.TerminationGracePeriodSeconds
		shorter = before == nil || *opts.GracePeriod < *before
	}
	switch {
	case s == vmi.RunWaitAsReceiver:
		return accepted(nil)
	case (s == vmi.RunManual || s == vmi.RunRerunOnFailure || s == vmi.RunHalted) && v == nil:
		return reply{}, c.conflict(vmKind, "VM is not running")
	case s == vmi.RunHalted && !shorter:
		return reply{}, c.conflict(vmKind, "Halted only supports manual stop requests with a shorter graceperiod")
	}
	if v != nil && opts.GracePeriod != nil {
		if err := c.set(vmiKind, opts.DryRun, *opts.GracePeriod, "spec", "terminationGracePeriodSeconds"); err != nil {
			return reply{}, err
		}
	}
	if s == vmi.RunAlways || s == vmi.RunOnce {
		return accepted(c.run(m, vmi.RunHalted, opts.DryRun))
	}
	return accepted(c.queue(m, opts.DryRun, ends(v.UID)))
}

func restart(c *call) (reply, error) {
	var opts vmi.RestartOptions
	if err := c.options(&opts); err != nil {
		return reply{}, err
	}
	if g := opts.GracePeriodSeconds; g != nil && *g > 0 {
		return reply{}, apierrors.NewBadRequest("For force restart, only gracePeriod=0 is supported for now")
	} else if g != nil && *g < 0 {
		return reply{}, apierrors.NewBadRequest("gracePeriod has to be greater or equal to 0")
	}
	m, err := c.vm()
	if err != nil {
		return reply{}, err
	}
	s, err := strategy(m)
	if err != nil {
		return reply{}, err
	}
	if s == vmi.RunHalted || s == vmi.RunOnce {
		return reply{}, c.conflict(vmKind, string(s)+" does not support manual restart requests")
	}
	v, err := c.vmi()
	if err != nil {
		return reply{}, c.conflict(vmKind, "VM is not running: Halted")
	}
	if len(m.Status.StateChangeRequests) > 0 {
		return reply{}, apierrors.NewInternalError(errQueued)
	}
	if opts.GracePeriodSeconds != nil {
		if err := c.set(vmiKind, opts.DryRun, 1, "spec", "terminationGracePeriodSeconds"); err != nil {
			return reply{}, err
		}
	}
	return accepted(c.queue(m, opts.DryRun, ends(v.UID), vmi.StateChangeRequest{Action: vmi.StartRequest}))
}

func migrate(c *call) (reply, error) {
	var opts vmi.MigrateOptions
	if err := c.options(&opts); err != nil {
		return reply{}, err
	}
	if _, err := c.vm(); err != nil {
		return reply{}, err
	}
	v, err := c.vmi()
	if err != nil {
		return reply{}, err
	}
	if v.Status.Phase != vmi.Running {
		return reply{}, c.conflict(vmKind, "VM is not running")
	}
	d := vmi.VirtualMachineInstanceMigrations.Definition
	spec := vmi.VirtualMachineInstanceMigrationSpec{VMIName: c.name, AddedNodeSelector: opts.AddedNodeSelector}
	plain, err := encoded(spec)
	if err != nil || len(opts.DryRun) > 0 {
		return accepted(err)
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": plain}}
	o.SetGroupVersionKind(d.GroupVersionKind)
	o.SetNamespace(c.namespace)
	o.SetGenerateName("kubevirt-migrate-vm-")
	return accepted(c.server.create(c.server.kinds[d.Resource()], o))
}

func expand(c *call) (reply, error) {
	m, err := c.vm()
	if err != nil {
		return reply{}, err
	}
	return expanded(m)
}

func expandGiven(c *call) (reply, error) {
	m := &vmi.VirtualMachine{}
	if err := c.options(m); err != nil {
		return reply{}, err
	}
	switch {
	case m.Spec.Template == nil:
		return reply{}, apierrors.NewBadRequest("Object is not a valid VirtualMachine: spec.template is required")
	case m.Namespace != "" && m.Namespace != c.namespace:
		return reply{}, apierrors.NewBadRequest("VM namespace must be empty or " + c.namespace)
	}
	return expanded(m)
}

func cancelEvacuationOfVM(c *call) (reply, error) {
	m, err := c.vm()
	if err != nil {
		return reply{}, err
	}
	if v, err := c.vmi(); err != nil || !metav1.IsControlledBy(v, m) {
		return reply{}, c.conflict(vmKind, "VMI is not started")
	}
	return cancelEvacuationOfVMI(c)
}

func cancelEvacuationOfVMI(c *call) (reply, error) {
	var opts vmi.EvacuateCancelOptions
	if err := c.options(&opts); err != nil {
		return reply{}, err
	}
	v, err := c.vmi()
	switch {
	case err != nil:
		return reply{}, err
	case v.Status.EvacuationNodeName == "":
		return done(nil)
	case v.Status.EvacuationNodeName != opts.EvacuationNodeName:
		return reply{}, c.conflict(vmiKind, "it is to leave node "+v.Status.EvacuationNodeName)
	}
	return done(c.set(vmiKind, opts.DryRun, nil, "status", "evacuationNodeName"))
}

// expanded answers with the VM as it is.
func expanded(m *vmi.VirtualMachine) (reply, error) {
	if m.Spec.Instancetype != nil || m.Spec.Preference != nil {
		return reply{}, apierrors.NewInternalError(errors.New("the fake expands no instance type or preference"))
	}
	m.TypeMeta = metav1.TypeMeta{APIVersion: vmKind.GroupVersion().String(), Kind: vmKind.Kind}
	return jsonReply(m)
}
