package bench

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// settles is how long nothing is to be written before a step of a VM counts as done.
const settles = 3 * time.Second

// VM counts what Podvisor writes for a VM that is created, stopped, started and
// deleted, by component, and prints it. The namespace must hold nothing else that
// changes.
func (b *Bench) VM(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	vms := b.Instances.VirtualMachines(b.Namespace)
	const name = "bench-vm"
	g := b.Guest(name)
	strategy := func(s vmi.RunStrategy) func() error {
		return func() error {
			patch := fmt.Sprintf(`{"spec":{"runStrategy":%q}}`, s)
			_, err := vms.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			return err
		}
	}
	is := func(s vmi.PrintableStatus) func() (bool, error) {
		return func() (bool, error) {
			v, err := vms.Get(ctx, name, metav1.GetOptions{})
			return err == nil && v.Status.PrintableStatus == s, err
		}
	}
	_, _ = fmt.Fprintln(b.Out, "\nAPI writes for a VM")
	for _, step := range []struct {
		what string
		do   func() error
		done func() (bool, error)
	}{
		{"created to Running", func() error {
			_, err := vms.Create(ctx, &vmi.VirtualMachine{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec:       vmi.VirtualMachineSpec{RunStrategy: new(vmi.RunAlways), Template: &vmi.VirtualMachineInstanceTemplateSpec{Spec: g.Spec}},
			}, metav1.CreateOptions{})
			return err
		}, is(vmi.StatusRunning)},
		{"Running to Stopped", strategy(vmi.RunHalted), is(vmi.StatusStopped)},
		{"Stopped to Running", strategy(vmi.RunAlways), is(vmi.StatusRunning)},
		{"deleted", func() error { return vms.Delete(ctx, name, metav1.DeleteOptions{}) }, func() (bool, error) {
			_, err := vms.Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		}},
	} {
		if err := b.step(ctx, step.what, step.do, step.done); err != nil {
			return fmt.Errorf("VM %s: %w", step.what, err)
		}
	}
	return nil
}

// Verbs counts what Podvisor writes for the verbs of a VM and its VMI, by component, and
// prints it. The namespace must hold nothing else that changes.
func (b *Bench) Verbs(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	vms, vmis := b.Instances.VirtualMachines(b.Namespace), b.Instances.VirtualMachineInstances(b.Namespace)
	const name = "bench-verbs"
	_, err := vms.Create(ctx, &vmi.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       vmi.VirtualMachineSpec{RunStrategy: new(vmi.RunHalted), Template: &vmi.VirtualMachineInstanceTemplateSpec{Spec: b.Guest(name).Spec}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	now, before := new(vmi.VirtualMachineInstance), new(vmi.VirtualMachineInstance) // before is from before the step
	// runs says whether the VMI is well, and as the function says.
	runs := func(is func(v *vmi.VirtualMachineInstance) bool) func() (bool, error) {
		return func() (bool, error) {
			v, err := vmis.Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			if err != nil || v.Status.Phase != vmi.PhaseRunning || v.Status.Condition(vmi.ConditionAgentConnected) == nil || !is(v) {
				return false, err
			}
			now = v
			return true, nil
		}
	}
	well := runs(func(*vmi.VirtualMachineInstance) bool { return true })
	reboots := func(v *vmi.VirtualMachineInstance) int64 {
		if v.Status.GuestReboots == nil {
			return 0
		}
		return v.Status.GuestReboots.Count
	}
	rebooted := runs(func(v *vmi.VirtualMachineInstance) bool { return reboots(v) > reboots(before) })
	paused := func(want bool) func() (bool, error) {
		return runs(func(v *vmi.VirtualMachineInstance) bool {
			return want == (v.Status.Condition(vmi.ConditionPaused) != nil)
		})
	}
	// Not softreboot: the agent of the demo guest has no program that reboots.
	_, _ = fmt.Fprintln(b.Out, "\nAPI writes for a verb")
	for _, step := range []struct {
		what string
		do   func() error
		done func() (bool, error)
	}{
		{"start", func() error { return vms.Start(ctx, name, vmi.StartOptions{}) }, well},
		{"pause", func() error { return vmis.Pause(ctx, name, vmi.PauseOptions{}) }, paused(true)},
		{"unpause", func() error { return vmis.Unpause(ctx, name, vmi.UnpauseOptions{}) }, paused(false)},
		{"freeze", func() error { return vmis.Freeze(ctx, name, client.FreezeOptions{}) }, well},
		{"unfreeze", func() error { return vmis.Unfreeze(ctx, name) }, well},
		{"guestosinfo", func() error { _, err := vmis.GuestInfo(ctx, name); return err }, well},
		{"screenshot", func() error { _, err := vmis.Screenshot(ctx, name); return err }, well},
		{"console", func() error {
			c, err := vmis.Console(ctx, name)
			if err == nil {
				err = c.Close()
			}
			return err
		}, well},
		{"reset", func() error { return vmis.Reset(ctx, name) }, rebooted},
		{"restart", func() error { return vms.Restart(ctx, name, vmi.RestartOptions{}) },
			runs(func(v *vmi.VirtualMachineInstance) bool { return v.UID != before.UID })},
		{"stop", func() error { return vms.Stop(ctx, name, vmi.StopOptions{}) }, func() (bool, error) {
			v, err := vms.Get(ctx, name, metav1.GetOptions{})
			return err == nil && v.Status.PrintableStatus == vmi.StatusStopped, err
		}},
	} {
		before = now
		if err := b.step(ctx, step.what, step.do, step.done); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return vms.Delete(ctx, name, metav1.DeleteOptions{})
}

// step does something, waits until it is done and nothing more is written, and prints
// what was written since.
func (b *Bench) step(ctx context.Context, what string, do func() error, done func() (bool, error)) error {
	before, err := b.allWrites()
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	var last map[string]int
	for since := time.Now(); time.Since(since) < settles; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
		ok, err := done()
		if err != nil {
			return err
		}
		now, err := b.allWrites()
		if err != nil {
			return err
		}
		if !ok || !maps.Equal(now, last) {
			since, last = time.Now(), now
		}
	}
	var each []string
	objects, events := 0, 0
	for _, k := range slices.Sorted(maps.Keys(last)) {
		n := last[k] - before[k]
		if n == 0 {
			continue
		}
		if strings.HasSuffix(k, " events") {
			events += n
			continue
		}
		objects += n
		each = append(each, fmt.Sprintf("%d %s", n, k))
	}
	_, _ = fmt.Fprintf(b.Out, "  %-20s %2d and %d events: %s\n", what, objects, events, strings.Join(each, ", "))
	return nil
}

// allWrites counts what Podvisor wrote in the namespace so far.
func (b *Bench) allWrites() (map[string]int, error) {
	f, err := os.Open(b.Cluster.AuditLog)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return countEach(f, b.Namespace)
}
