package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/jsonpatch"
	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/internal/vmi/verb"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// pooled does what plans of pools do with VMs.
type pooled struct {
	client *client.Client
	// writer is that of the loop of VMs, which sees what is written here.
	writer *reconcile.Writer[*vmi.VirtualMachine, *vmi.VirtualMachineList]
	// made are the VMs that were created and that the cache may not have.
	made *reconcile.Made[*vmi.VirtualMachine]
	// cached is the VM of a key in the cache. Nil: it has none.
	cached func(key string) *vmi.VirtualMachine
	// deleted are what was deleted.
	deleted *recent
	now     func() time.Time
}

// is reports whether the action has the type.
func is[A scheduler.Action](a scheduler.Action) bool { _, ok := a.(A); return ok }

// ofVMs are the first of the actions that are of one type, if that is one of those with VMs.
func ofVMs(actions []scheduler.Action) []scheduler.Action {
	if !is[scheduler.CreateVM](actions[0]) && !changesVM(actions[0]) {
		return nil
	}
	n := slices.IndexFunc(actions, func(a scheduler.Action) bool { return reflect.TypeOf(a) != reflect.TypeOf(actions[0]) })
	if n < 0 {
		return actions
	}
	return actions[:n]
}

// doVMs does the actions, which are of one type, in parallel.
func (e *executor[T, L]) doVMs(ctx context.Context, o T, all []scheduler.Action) error {
	e.log.Info("write VMs", "object", reconcile.Key(o), "count", len(all), "first", all[0].String())
	return inParallel(all, func(a scheduler.Action) error { _, err := e.do(ctx, o, a); return err })
}

// create creates the VM, as [createOwned] says.
func (w *pooled) create(ctx context.Context, owner metav1.Object, v *vmi.VirtualMachine) error {
	got, err := createOwned(ctx, w.client, vmi.VirtualMachines, owner, v)
	if err != nil {
		return err
	}
	if there := w.cached(reconcile.Key(got)); there == nil || there.UID != got.UID {
		w.made.Note(got, w.now())
	}
	return nil
}

// delete deletes the VM, as [deleteUnchanged] says.
func (w *pooled) delete(ctx context.Context, v *vmi.VirtualMachine) error {
	return deleteUnchanged(ctx, w.client, vmi.VirtualMachines, w.deleted, w.now, v)
}

// change changes the VM if it has not changed since, and lets its failed starts count no more:
// they were those of another template.
func (w *pooled) change(ctx context.Context, a scheduler.ChangeVM) error {
	v := a.From
	all := unchanged(v)
	all = append(all, entries("/metadata/labels", v.Labels, a.To.Labels)...)
	all = append(all, entries("/metadata/annotations", v.Annotations, a.To.Annotations)...)
	now, err := w.patch(ctx, v, append(all, jsonpatch.Replace("/spec", a.To.Spec)))
	switch {
	case now == nil && err == nil:
		return nil
	case isRefusal(err), apierrors.IsInternalError(err):
		return &Refusal{vmi.Finding{Reason: failedCreateInstance, Message: err.Error()}, err}
	case err != nil:
		return fmt.Errorf("change VirtualMachine %s/%s: %w", v.Namespace, v.Name, err)
	}
	f := now.Status.StartFailure
	if f == nil || f.ConsecutiveFailCount == 0 {
		return nil
	}
	// The loop of VMs may write at the same moment. Only another count is left as it is.
	const at = "/status/startFailure"
	none := vmi.StartFailure{LastFailedVMIUID: f.LastFailedVMIUID}
	forget := []jsonpatch.Operation{jsonpatch.Test("/metadata/uid", now.UID), jsonpatch.Test(at, f), jsonpatch.Replace(at, none)}
	if _, err := w.patch(ctx, now, forget, "status"); err != nil && !apierrors.IsInvalid(err) {
		return fmt.Errorf("write status.startFailure of VirtualMachine %s/%s: %w", v.Namespace, v.Name, err)
	}
	return nil
}

// restart asks for the restart of the VM as the verb does. One for which that is refused is
// left: it is decided on again when it changes.
func (w *pooled) restart(ctx context.Context, a scheduler.RestartVM) error {
	patches, err := verb.Restart(a.VM, a.Instance, w.now())
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	for _, p := range patches {
		switch _, err := w.patch(ctx, a.VM, p.Operations, p.Subresource); {
		case apierrors.IsInvalid(err): // the VM is not as it was
			return apierrors.NewConflict(vmi.VirtualMachines.Resource().GroupResource(), a.VM.Name, errOldCache)
		case err != nil:
			return fmt.Errorf("restart VirtualMachine %s/%s: %w", a.VM.Namespace, a.VM.Name, err)
		}
	}
	return nil
}

// patch patches the VM, and returns it as it is stored then. Nil: it is gone.
func (w *pooled) patch(ctx context.Context, v *vmi.VirtualMachine, operations []jsonpatch.Operation, subresources ...string) (*vmi.VirtualMachine, error) {
	raw, err := json.Marshal(operations)
	if err != nil {
		return nil, err
	}
	now, err := w.client.VirtualMachines(v.Namespace).Patch(ctx, v.Name, types.JSONPatchType, raw, metav1.PatchOptions{}, subresources...)
	switch {
	case isMissing(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	w.writer.Wrote(now)
	return now, nil
}

// unchanged are the operations by which a patch of an object that has changed is a conflict.
func unchanged(o metav1.Object) []jsonpatch.Operation {
	return []jsonpatch.Operation{jsonpatch.Replace("/metadata/uid", o.GetUID()), jsonpatch.Replace("/metadata/resourceVersion", o.GetResourceVersion())}
}

// entries add the entries to the map at the path.
func entries(at string, there, added map[string]string) []jsonpatch.Operation {
	var out []jsonpatch.Operation
	if there == nil && len(added) > 0 {
		out = append(out, jsonpatch.Add(at, map[string]string{}))
	}
	for _, k := range slices.Sorted(maps.Keys(added)) {
		out = append(out, jsonpatch.Add(at+"/"+jsonpatch.Escape(k), added[k]))
	}
	return out
}
