package demo

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/podvisor/podvisor/vmi"
)

// lasting is the name of the VM.
const lasting = "lasting"

// identityMark begins what the guest of the VM says of itself.
const identityMark = "podvisor-guest: MAC "

// showVM starts a VM, stops it and starts it again, and shows that the guest is the
// same.
func (d *Demo) showVM(ctx context.Context) error {
	if _, err := d.Kubectl.Run(ctx, "-n", namespace, "delete", "vm", lasting, "--ignore-not-found", "--timeout=60s"); err != nil {
		return fmt.Errorf("remove the VM of an earlier demo: %w", err)
	}
	manifest, err := d.manifest("vm-hello.yaml")
	if err != nil {
		return err
	}
	d.title("A VM, which starts and stops: kubectl apply -f " + filepath.Join("examples", "vm-hello.yaml"))
	t := newTimeline(d.Out)
	if _, err := d.Kubectl.RunInput(ctx, strings.NewReader(manifest), "-n", namespace, "apply", "-f", "-"); err != nil {
		return err
	}
	first, err := d.identity(ctx, t)
	if err != nil {
		return err
	}
	if err := d.runStrategy(ctx, t, "Halted", "Stopped"); err != nil {
		return err
	}
	if err := d.runStrategy(ctx, t, "Always", "Running"); err != nil {
		return err
	}
	again, err := d.identity(ctx, t)
	switch {
	case err != nil:
		return err
	case again != first:
		return fmt.Errorf("the guest of VM %s is another one after its restart: %s, before: %s", lasting, again, first)
	}
	t.Note("the guest is the same one as before: %s", again)
	d.title("kubectl get vm,vmi")
	table, err := d.Kubectl.Run(ctx, "-n", namespace, "get", "vm,vmi")
	if err != nil {
		return err
	}
	d.text(table)
	return nil
}

// runStrategy changes the VM's run strategy and waits for what it leads to.
func (d *Demo) runStrategy(ctx context.Context, t *Timeline, strategy, status string) error {
	patch := fmt.Sprintf(`{"spec":{"runStrategy":%q}}`, strategy)
	if _, err := d.Kubectl.Run(ctx, "-n", namespace, "patch", "vm", lasting, "--type=merge", "-p", patch); err != nil {
		return err
	}
	t.Note("kubectl patch vm %s --type=merge -p '%s'", lasting, patch)
	if _, err := d.Kubectl.Run(ctx, "-n", namespace, "wait", "vm", lasting, "--for=jsonpath={.status.printableStatus}="+status, "--timeout=5m"); err != nil {
		return fmt.Errorf("wait until VM %s is %s: %w", lasting, status, err)
	}
	t.Note("the VM is %s", status)
	return nil
}

// consoleOfVM is the console of the VM's present guest. The pod of the guest before may
// still be there.
func (d *Demo) consoleOfVM(ctx context.Context) (string, error) {
	uid, err := d.Kubectl.Run(ctx, "-n", namespace, "get", "vmi", lasting, "-o", "jsonpath={.metadata.uid}")
	if err != nil {
		return "", err
	}
	return d.console(ctx, vmi.CreatedByLabel+"="+strings.TrimSpace(uid))
}

// identity waits until the guest says who it is.
func (d *Demo) identity(ctx context.Context, t *Timeline) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 5*time.Minute, fmt.Errorf("five minutes are over; look at `kubectl -n %s describe vm %s`", namespace, lasting))
	defer cancel()
	for {
		console, err := d.consoleOfVM(ctx)
		for line := range strings.Lines(console) {
			if _, id, ok := strings.Cut(strings.TrimSpace(line), identityMark); err == nil && ok {
				id = "MAC " + id
				t.Note("the guest has booted: %s", id)
				return id, nil
			}
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("the guest of VM %s does not say who it is: %w", lasting, context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
}
