package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/expiring"
	"github.com/podvisor/podvisor/internal/jsonpatch"
	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// recentFor is how long it is remembered that something was done with an object.
const recentFor = time.Minute

// recent are when something was done with objects: when they were deleted, or when their
// status was written.
type recent = expiring.Map[types.UID, time.Time]

// owned does what plans of other kinds do with VMIs.
type owned struct {
	client *client.Client
	// writer is that of the loop of VMIs, which sees what is written here.
	writer *reconcile.Writer[*vmi.VirtualMachineInstance, *vmi.VirtualMachineInstanceList]
	// made are the VMIs that were created and that the cache may not have.
	made *reconcile.Made[*vmi.VirtualMachineInstance]
	// cached is the VMI of a key in the cache. Nil: it has none.
	cached func(key string) *vmi.VirtualMachineInstance
	// deleted are what was deleted.
	deleted *recent
	now     func() time.Time
}

// failedCreateInstance is why a VMI or a VM cannot be created or changed. Where another object
// has its name, the reason is the kind with NameTaken.
const failedCreateInstance = "FailedCreate"

// batch is how many VMIs or VMs of one object are written at the same time at most.
const batch = 8

// createAll creates the VMIs in parallel.
func (w *owned) createAll(ctx context.Context, owner metav1.Object, all []*vmi.VirtualMachineInstance) error {
	return inParallel(all, func(v *vmi.VirtualMachineInstance) error { return w.create(ctx, owner, v) })
}

// deleteAll deletes the VMIs in parallel.
func (w *owned) deleteAll(ctx context.Context, all []*vmi.VirtualMachineInstance) error {
	return inParallel(all, func(v *vmi.VirtualMachineInstance) error { return w.delete(ctx, v) })
}

// inParallel does one of all, then two at a time, then four, until one does not
// succeed: so objects that are refused cost few requests.
func inParallel[T any](all []T, do func(T) error) error {
	for n := 1; len(all) > 0; n = min(2*n, batch) {
		now := all[:min(n, len(all))]
		all = all[len(now):]
		errs := make([]error, len(now))
		var wg sync.WaitGroup
		for i, v := range now {
			wg.Go(func() { errs[i] = do(v) })
		}
		wg.Wait()
		if err := firstRefusal(errs); err != nil {
			return err
		}
	}
	return nil
}

// firstRefusal is the first refusal, or else all errors.
func firstRefusal(errs []error) error {
	for _, err := range errs {
		var r *Refusal
		if errors.As(err, &r) {
			return err
		}
	}
	return errors.Join(errs...)
}

// create creates the VMI, as [createOwned] says.
func (w *owned) create(ctx context.Context, owner metav1.Object, v *vmi.VirtualMachineInstance) error {
	got, err := createOwned(ctx, w.client, vmi.VirtualMachineInstances, owner, v)
	if err != nil {
		return err
	}
	if there := w.cached(reconcile.Key(got)); there == nil || there.UID != got.UID {
		w.made.Note(got, w.now())
	}
	return nil
}

// createOwned creates the object. One of that name that the owner controls is the one that
// was to be created.
func createOwned[T vmi.Object, L runtime.Object](ctx context.Context, c *client.Client, d vmi.DefinitionOf[T, L], owner metav1.Object, o T) (T, error) {
	objects := client.Of(c, d, o.GetNamespace())
	var got T
	err := reconcile.Complete(ctx, func(ctx context.Context) (err error) {
		got, err = objects.Create(ctx, o, metav1.CreateOptions{})
		return err
	})
	if apierrors.IsAlreadyExists(err) {
		got, err = objects.Get(ctx, o.GetName(), metav1.GetOptions{})
		if err == nil && !metav1.IsControlledBy(got, owner) {
			return got, &Refusal{Finding: vmi.Finding{Reason: d.Kind + "NameTaken", Message: fmt.Sprintf("%s %s exists and belongs to something else", d.Kind, o.GetName())}}
		}
		if err == nil && got.GetDeletionTimestamp() != nil {
			err = fmt.Errorf("the %s with this name is being deleted", d.Kind)
		}
	}
	switch {
	case err == nil:
		return got, nil
	case isRefusal(err), apierrors.IsInternalError(err): // as where the webhook that must permit it does not answer
		return got, &Refusal{vmi.Finding{Reason: failedCreateInstance, Message: err.Error()}, err}
	}
	return got, fmt.Errorf("create %s %s/%s: %w", d.Kind, o.GetNamespace(), o.GetName(), err)
}

// delete deletes the VMI, as [deleteUnchanged] says.
func (w *owned) delete(ctx context.Context, v *vmi.VirtualMachineInstance) error {
	return deleteUnchanged(ctx, w.client, vmi.VirtualMachineInstances, w.deleted, w.now, v)
}

// deleteUnchanged deletes the object if it has not changed since: whoever orphaned it in
// between wants to keep it. One that is gone is what was wanted.
func deleteUnchanged[T vmi.Object, L runtime.Object](ctx context.Context, c *client.Client, d vmi.DefinitionOf[T, L], deleted *recent, now func() time.Time, o T) error {
	uid, version := o.GetUID(), o.GetResourceVersion()
	if _, ok := deleted.Get(uid, now()); ok {
		return nil
	}
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}
	objects, tries := client.Of(c, d, o.GetNamespace()), 0
	err := reconcile.Complete(ctx, func(ctx context.Context) error {
		tries++
		err := objects.Delete(ctx, o.GetName(), options)
		if tries == 1 || !apierrors.IsConflict(err) {
			return err
		}
		// The first try may have changed it.
		now, errGet := objects.Get(ctx, o.GetName(), metav1.GetOptions{})
		if errGet != nil || now.GetUID() != uid || now.GetDeletionTimestamp() == nil {
			return err
		}
		return nil
	})
	if err != nil && !isMissing(err) {
		return fmt.Errorf("delete %s %s/%s: %w", d.Kind, o.GetNamespace(), o.GetName(), err)
	}
	deleted.Put(uid, now(), now(), recentFor)
	return nil
}

// patch patches the metadata of the VMI if it has not changed since.
func (w *owned) patch(ctx context.Context, v *vmi.VirtualMachineInstance, what string, metadata map[string]any) error {
	now, err := client.WriteMetadata(ctx, w.client.VirtualMachineInstances(v.Namespace), v, metadata)
	return w.wrote(v, what, now, err)
}

// change changes annotations and link states of the VMI if it has not changed since. The
// interfaces are a list, of which a merge patch would write everything.
func (w *owned) change(ctx context.Context, a scheduler.ChangeInstance) error {
	v := a.Instance
	if len(a.Links) == 0 {
		return w.patch(ctx, v, "annotate", map[string]any{"annotations": a.Annotations})
	}
	all := unchanged(v)
	for i, n := range v.Spec.Domain.Devices.Interfaces {
		if to, ok := a.Links[n.Name]; ok {
			all = append(all, jsonpatch.Add(fmt.Sprintf("/spec/domain/devices/interfaces/%d/state", i), to))
		}
	}
	// One by one: the cache does not have all annotations of the VMI.
	all = append(all, entries("/metadata/annotations", v.Annotations, a.Annotations)...)
	raw, err := json.Marshal(all)
	if err != nil {
		return err
	}
	now, err := w.client.VirtualMachineInstances(v.Namespace).Patch(ctx, v.Name, types.JSONPatchType, raw, metav1.PatchOptions{})
	return w.wrote(v, "set the links of", now, err)
}

// wrote notes what the VMI is after a patch of it, and says what the patch was for if it failed.
func (w *owned) wrote(v *vmi.VirtualMachineInstance, what string, now *vmi.VirtualMachineInstance, err error) error {
	switch {
	case isMissing(err):
		return nil
	case err != nil:
		return fmt.Errorf("%s VirtualMachineInstance %s/%s: %w", what, v.Namespace, v.Name, err)
	}
	w.writer.Wrote(now)
	return nil
}

// write makes the labels and the status of the VMI those of the other, if it has not changed.
func (w *owned) write(ctx context.Context, a scheduler.WriteInstance) error {
	was := a.From
	labels := map[string]string{}
	for k, v := range a.To.Labels {
		if old, ok := was.Labels[k]; !ok || old != v {
			labels[k] = v
		}
	}
	var removed []string
	for k := range was.Labels {
		if _, ok := a.To.Labels[k]; !ok {
			removed = append(removed, k)
		}
	}
	if len(labels)+len(removed) > 0 {
		now, err := w.writer.Labels(ctx, was, labels, removed...)
		if err != nil {
			return err
		}
		was = was.DeepCopy()
		was.ObjectMeta = now.ObjectMeta
	}
	to := a.To.DeepCopy()
	to.ObjectMeta = was.ObjectMeta
	_, err := w.writer.Status(ctx, was, to)
	return err
}

// adopt makes the owner the controller of the VMI, if it still exists. The generation
// that the VMI was started from is one of another object.
func (w *owned) adopt(ctx context.Context, owner metav1.OwnerReference, v *vmi.VirtualMachineInstance) error {
	m := map[string]any{"ownerReferences": append(slices.Clone(v.OwnerReferences), owner)}
	if vmi.StartGeneration(v) != 0 {
		m["annotations"] = map[string]string{vmi.VMGenerationAnnotation: "0"}
	}
	return w.patch(ctx, v, "adopt", m)
}

// release makes the owner no longer the controller of the VMI.
func (w *owned) release(ctx context.Context, owner types.UID, v *vmi.VirtualMachineInstance) error {
	rest := slices.DeleteFunc(slices.Clone(v.OwnerReferences), func(r metav1.OwnerReference) bool { return r.UID == owner })
	return w.patch(ctx, v, "release", map[string]any{"ownerReferences": rest})
}

// creations are the VMIs that the first of the actions create.
func creations(actions []scheduler.Action) (all []*vmi.VirtualMachineInstance) {
	for _, a := range actions {
		c, ok := a.(scheduler.CreateInstance)
		if !ok {
			break
		}
		all = append(all, c.Instance)
	}
	return all
}

// deletions are the VMIs that the first of the actions delete.
func deletions(actions []scheduler.Action) (all []*vmi.VirtualMachineInstance) {
	for _, a := range actions {
		d, ok := a.(scheduler.DeleteInstance)
		if !ok {
			break
		}
		all = append(all, d.Instance)
	}
	return all
}

// createInstances creates the VMIs.
func (e *executor[T, L]) createInstances(ctx context.Context, o T, all []*vmi.VirtualMachineInstance) error {
	e.log.Info("create instances", "object", reconcile.Key(o), "count", len(all), "vmi", reconcile.Key(all[0]))
	return e.owned.createAll(ctx, o, all)
}

// deleteInstances deletes the VMIs.
func (e *executor[T, L]) deleteInstances(ctx context.Context, o T, all []*vmi.VirtualMachineInstance) error {
	e.log.Info("delete instances", "object", reconcile.Key(o), "count", len(all), "vmi", reconcile.Key(all[0]))
	return e.owned.deleteAll(ctx, all)
}

// createRevision creates the revision. One that exists has the same content: its name
// has the generation.
func (e *executor[T, L]) createRevision(ctx context.Context, o T, r *appsv1.ControllerRevision) error {
	if vmi.StartedVM(r.Name) != "" {
		spec, err := e.storedSpec(ctx, o)
		if err != nil {
			return err
		}
		if r, err = vm.AsStored(r, spec); err != nil {
			return err
		}
	}
	_, err := e.kube.AppsV1().ControllerRevisions(r.Namespace).Create(ctx, r, metav1.CreateOptions{})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return nil
	case isRefusal(err):
		return &Refusal{vmi.Finding{Reason: vm.FailedCreate, Message: err.Error()}, err}
	}
	return fmt.Errorf("create ControllerRevision %s/%s: %w", r.Namespace, r.Name, err)
}

// storedSpec is the spec of the object as the API server has it, whose notation the types do
// not keep. Nil: there is no client to read it with, or it is of another generation by now,
// whose revision has another name.
func (e *executor[T, L]) storedSpec(ctx context.Context, o T) (map[string]any, error) {
	c := e.dataVolumes.client
	if c == nil {
		return nil, nil
	}
	now, err := c.Resource(e.kind.Resource()).Namespace(o.GetNamespace()).Get(ctx, o.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the spec of %s %s: %w", e.kind.Kind, reconcile.Key(o), err)
	case now.GetUID() != o.GetUID() || now.GetGeneration() != o.GetGeneration():
		return nil, nil
	}
	spec, _, err := unstructured.NestedMap(now.Object, "spec")
	return spec, err
}

// deleteRevision deletes the revision, if it is still the same.
func (e *executor[T, L]) deleteRevision(ctx context.Context, namespace string, a scheduler.DeleteRevision) error {
	if _, ok := e.deleted.Get(a.UID, e.now()); ok {
		return nil
	}
	err := e.kube.AppsV1().ControllerRevisions(namespace).Delete(ctx, a.Name, *metav1.NewPreconditionDeleteOptions(string(a.UID)))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete ControllerRevision %s/%s: %w", namespace, a.Name, err)
	}
	e.deleted.Put(a.UID, e.now(), e.now(), recentFor)
	return nil
}

// setRunStrategy changes the spec of a VM if nothing of it has changed since.
func (e *executor[T, L]) setRunStrategy(ctx context.Context, o T, a scheduler.SetRunStrategy) (T, error) {
	raw, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": o.GetUID(), "resourceVersion": o.GetResourceVersion()},
		"spec":     map[string]any{"runStrategy": a.To, "running": nil},
	})
	if err != nil {
		return o, err
	}
	now, err := client.Of(e.client, e.kind, o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, raw, metav1.PatchOptions{})
	if err != nil {
		return o, fmt.Errorf("write the run strategy of %s: %w", reconcile.Key(o), err)
	}
	e.writer.Wrote(now)
	return now, nil
}
