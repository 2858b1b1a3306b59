package bench

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/e2e/audit"
	"github.com/podvisor/podvisor/vmi"
)

// The steps of a restart, beside those of an end and a start.
const (
	stepAgain   = "new VMI created"
	stepRunning = "new VMI Running"
)

// restartRoad are the steps from the last line of the guest of a VM that is restarted to
// the next one's Running.
var restartRoad = []step{
	{stepWritten, stepOff, byQEMU},
	{stepFinalizer, stepWritten, byUs},
	{stepAgain, stepFinalizer, byUs},
	{stepRunning, stepAgain, byUs},
}

// Restart measures the restart of a VM by its verb, from the guest's last line to the next
// guest's Running, and prints it beside the start of a plain pod.
func (b *Bench) Restart(ctx context.Context) error {
	const name = "bench-restart"
	vms := b.Instances.VirtualMachines(b.Namespace)
	_, err := vms.Create(ctx, &vmi.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       vmi.VirtualMachineSpec{RunStrategy: new(vmi.RunAlways), Template: &vmi.VirtualMachineInstanceTemplateSpec{Spec: b.Guest(name).Spec}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	key := &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Name: name}}
	v, err := b.await(ctx, key, isRunning)
	if err != nil {
		return err
	}
	var pods, all []moments
	for i := range b.runs() {
		p := fmt.Sprintf("beside-restart-%d", i)
		plain, err := b.pod(ctx, b.sleeper(p))
		if err == nil {
			err = b.podGone(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + p})
		}
		if err != nil {
			return fmt.Errorf("plain pod: %w", err)
		}
		m, next, err := b.restart(ctx, v)
		if err != nil {
			return fmt.Errorf("restart %d: %w", i+1, err)
		}
		pods, all, v = append(pods, plain), append(all, m), next
	}
	printRoad(b.Out, "from the guest's end to the next guest's Running, of a VM that is restarted", stepOff, restartRoad, column{"restart", all, restartRoad})
	seconds := func(all []moments, from, to string) float64 {
		return median(all, func(m moments) float64 { return m.between(from, to).Seconds() })
	}
	restart, pod := seconds(all, stepOff, stepRunning), seconds(pods, stepCreated, stepSeen)
	_, _ = fmt.Fprintf(b.Out, "  restart, guest off to Running %.2f s (%+.2f s beside the Ready of a plain pod, %.2f s)\n", restart, restart-pod, pod)
	return vms.Delete(ctx, name, metav1.DeleteOptions{})
}

// restart restarts the VM of a VMI, and returns also the next VMI.
func (b *Bench) restart(ctx context.Context, v *vmi.VirtualMachineInstance) (moments, *vmi.VirtualMachineInstance, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	if err := b.awaitConsole(ctx, v, "serving HTTP"); err != nil {
		return nil, nil, err
	}
	from, err := b.sources()
	if err != nil {
		return nil, nil, err
	}
	console, err := b.follow(ctx, v, "powering off")
	if err != nil {
		return nil, nil, err
	}
	if err := b.Instances.VirtualMachines(b.Namespace).Restart(ctx, v.Name, vmi.RestartOptions{}); err != nil {
		return nil, nil, err
	}
	m := moments{}
	next, err := b.await(ctx, v, func(now *vmi.VirtualMachineInstance) bool { return now.UID != v.UID && isRunning(now) })
	if err != nil {
		return nil, nil, err
	}
	m[stepRunning] = time.Now()
	if m[stepOff], err = console.found(); err != nil {
		return nil, nil, err
	}
	if err := b.podGone(ctx, podsOf(v)); err != nil {
		return nil, nil, err
	}
	log, err := from.audit.since()
	if err != nil {
		return nil, nil, err
	}
	return m, next, m.restarting(log, b.Namespace, v.Name)
}

func isRunning(v *vmi.VirtualMachineInstance) bool { return v.Status.Phase == vmi.PhaseRunning }

// restarting are the moments that the audit log has of the end of a VMI and the creation of the
// next one.
func (m moments) restarting(log []byte, namespace, vmi string) error {
	return eachAnswer(log, namespace, func(e audit.Entry) {
		switch what, by := e.What(), by(e); {
		case e.ObjectRef.Name != vmi:
		case what == "create virtualmachineinstances":
			m.note(stepAgain, e.At)
		case !m[stepAgain].IsZero(): // about the next
		case isStatus(what) && by == "virt-handler":
			m[stepWritten] = e.At
		case what == "patch virtualmachineinstances" && by == "virt-controller":
			m[stepFinalizer] = e.At // an earlier one was about the guest before its end
		}
	})
}
