package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// component is what events come from, as in KubeVirt.
const component = "virtualmachine-controller"

// Refusal is the error of a pod, a claim, a VMI or a DataVolume that the API server does
// not accept as it is, for example for a quota, an admission plugin, or a namespace that is
// being deleted. The Finding is what the status of the object says of it.
type Refusal struct {
	vmi.Finding
	// Err is the answer of the API server. Nil: the name belongs to something else.
	Err error
}

// Error is the reason and the message.
func (r *Refusal) Error() string { return r.Reason + ": " + r.Message }

// Unwrap returns the answer of the API server.
func (r *Refusal) Unwrap() error { return r.Err }

// executor does the actions of plans for objects of one kind.
type executor[T vmi.Object, L runtime.Object] struct {
	kube   kubernetes.Interface
	events *reconcile.Events
	writer *reconcile.Writer[T, L]
	client *client.Client
	log    *slog.Logger
	// made notes the pods that are created.
	made *made
	// rendered notes the pods while they are created.
	rendered *rendered
	// gates notes the conditions of pods that are written.
	gates *gates
	// claims notes the claims that are written.
	claims *claims
	// deleted notes the pods and the revisions that are deleted.
	deleted *recent
	now     func() time.Time
	// describe is what the log has of a status: keys and values.
	describe func(T) []any
	// kind is the kind of the objects.
	kind vmi.DefinitionOf[T, L]
	// dataVolumes makes DataVolumes.
	dataVolumes *dataVolumes
	// owned does what is done with VMIs. Nil: the objects own none.
	owned *owned
	// pooled does what is done with VMs.
	pooled *pooled
	// calls makes the calls of migrations. Nil: there are none.
	calls *migrationCalls
}

// act does the plan's actions in order. It returns the object as it is after
// them, also with an error.
func (e *executor[T, L]) act(ctx context.Context, o T, p scheduler.Plan) (T, error) {
	for rest := p.Actions; len(rest) > 0; {
		n := 1
		var err error
		if all := creations(rest); len(all) > 0 {
			n, err = len(all), e.createInstances(ctx, o, all)
		} else if all := deletions(rest); len(all) > 0 {
			n, err = len(all), e.deleteInstances(ctx, o, all)
		} else if all := ofVMs(rest); len(all) > 0 {
			n, err = len(all), e.doVMs(ctx, o, all)
		} else {
			o, err = e.do(ctx, o, rest[0])
		}
		if err != nil {
			return o, err
		}
		rest = rest[n:]
	}
	return o, nil
}

func (e *executor[T, L]) do(ctx context.Context, o T, a scheduler.Action) (T, error) {
	log := e.log.With(reconcile.LogKey(o), reconcile.Key(o))
	switch a := a.(type) {
	case scheduler.AddFinalizer:
		return e.writer.Finalizers(ctx, o, append(slices.Clone(o.GetFinalizers()), a.Finalizer))
	case scheduler.RemoveFinalizer:
		log.Info("remove finalizer")
		return e.removeFinalizer(ctx, o, a.Finalizer)
	case scheduler.SetLabel:
		log.Info("set label", "label", a.Key, "value", a.Value)
		return e.writer.Label(ctx, o, a.Key, a.Value)
	case scheduler.RemoveLabel:
		log.Info("remove label", "label", a.Key)
		return e.writer.Unlabel(ctx, o, a.Key)
	case scheduler.ChangeLabels:
		log.Info("change labels", "labels", a.Labels, "removed", a.Removed, "annotations", a.Annotations)
		if len(a.Annotations) > 0 {
			return e.writer.WithoutAnnotations(ctx, o, a.Annotations, a.Labels, a.Removed...)
		}
		return e.writer.Labels(ctx, o, a.Labels, a.Removed...)
	case scheduler.DeleteObject:
		log.Info("delete")
		return o, e.deleteObject(ctx, o)
	case scheduler.CreatePod:
		log.Info("create pod", "pod", a.Pod.Name)
		return o, e.createPod(ctx, o, a.Pod)
	case scheduler.CreateClaim:
		log.Info("create claim", "claim", a.Claim.Name)
		return o, e.createClaim(ctx, a.Claim)
	case scheduler.ChangeClaim:
		log.Info("change claim", "claim", a.Name, "labels", a.Labels, "removed", a.Removed)
		return o, e.changeClaim(ctx, o.GetNamespace(), a)
	case scheduler.DeleteClaim:
		log.Info("delete claim", "claim", a.Name)
		return o, e.deleteClaim(ctx, o.GetNamespace(), a)
	case scheduler.DeletePod:
		log.Info("delete pod", "pod", a.Name)
		return o, e.deletePod(ctx, o.GetNamespace(), a)
	case scheduler.SetPodCondition:
		log.Info("write pod condition", "pod", a.Name, "condition", a.Condition.Type, "status", a.Condition.Status)
		return o, e.setPodCondition(ctx, o.GetNamespace(), a)
	case scheduler.AnnotatePod:
		log.Info("annotate pod", "pod", a.Name, "annotation", a.Key, "value", a.Value)
		return o, e.annotatePod(ctx, o.GetNamespace(), a)
	case scheduler.WriteStatus[T]:
		log.Info("write status", e.describe(a.Object)...)
		return e.writer.Status(ctx, o, a.Object)
	case scheduler.Emit:
		log.Info("emit event", "reason", a.Reason, "message", a.Message)
		e.events.Emit(ctx, o, reconcile.Event{Warning: a.Warning, Finding: a.Finding})
		return o, nil
	case scheduler.CreateInstance:
		return o, e.createInstances(ctx, o, []*vmi.VirtualMachineInstance{a.Instance})
	case scheduler.DeleteInstance:
		return o, e.deleteInstances(ctx, o, []*vmi.VirtualMachineInstance{a.Instance})
	case scheduler.AdoptInstance:
		log.Info("adopt instance", "vmi", reconcile.Key(a.Instance))
		return o, e.owned.adopt(ctx, *metav1.NewControllerRef(o, e.kind.GroupVersionKind), a.Instance)
	case scheduler.ReleaseInstance:
		log.Info("release instance", "vmi", reconcile.Key(a.Instance))
		return o, e.owned.release(ctx, o.GetUID(), a.Instance)
	case scheduler.ChangeInstance:
		log.Info("change instance", "vmi", reconcile.Key(a.Instance), "annotations", a.Annotations, "links", a.Links)
		return o, e.owned.change(ctx, a)
	case scheduler.CreateVM:
		return o, e.pooled.create(ctx, o, a.VM)
	case scheduler.DeleteVM:
		return o, e.pooled.delete(ctx, a.VM)
	case scheduler.ChangeVM:
		return o, e.pooled.change(ctx, a)
	case scheduler.RestartVM:
		return o, e.pooled.restart(ctx, a)
	case scheduler.CreateMigration:
		log.Info("create migration", "name", a.Migration.Name)
		return o, e.createMigration(ctx, o, a)
	case scheduler.EvictPod:
		log.Info("evict pod", "pod", a.Name)
		return o, e.evictPod(ctx, o, a)
	case scheduler.WriteInstance:
		log.Info("write instance", append([]any{"vmi", reconcile.Key(a.From)}, describeInstance(a.To)...)...)
		return o, e.owned.write(ctx, a)
	case scheduler.EmitFor:
		log.Info("emit event", "vmi", reconcile.Key(a.Instance), "reason", a.Reason, "message", a.Message)
		e.events.Emit(ctx, a.Instance, reconcile.Event{Warning: a.Warning, Finding: a.Finding})
		return o, nil
	case scheduler.AnnounceGuest:
		log.Debug("call the handler of the source", "call", a)
		return o, e.call(func(c *migrationCalls) { c.announce(ctx, o, a) })
	case scheduler.AcceptMigration:
		log.Debug("call the handler of the target", "call", a)
		return o, e.call(func(c *migrationCalls) { c.accept(ctx, o, a) })
	case scheduler.StartMigration:
		log.Debug("call the handler of the source", "call", a)
		return o, e.call(func(c *migrationCalls) { c.start(ctx, o, a) })
	case scheduler.AbortMigration:
		log.Debug("call the handler of the source", "call", a)
		return o, e.call(func(c *migrationCalls) { c.abort(ctx, o, a) })
	case scheduler.CreateDataVolume:
		log.Info("create DataVolume", "name", a.DataVolume.GetName())
		return o, e.dataVolumes.create(ctx, a.DataVolume)
	case scheduler.CreateRevision:
		return o, e.createRevision(ctx, o, a.Revision)
	case scheduler.DeleteRevision:
		return o, e.deleteRevision(ctx, o.GetNamespace(), a)
	case scheduler.SetRunStrategy:
		log.Info("set run strategy", "from", a.From, "to", a.To)
		return e.setRunStrategy(ctx, o, a)
	default:
		return o, fmt.Errorf("unknown action %T", a)
	}
}

// removeFinalizer removes the finalizer. An object that is gone has none.
func (e *executor[T, L]) removeFinalizer(ctx context.Context, o T, finalizer string) (T, error) {
	without := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return f == finalizer })
	now, err := e.writer.Finalizers(ctx, o, without)
	if apierrors.IsNotFound(err) {
		return o, nil
	}
	return now, err
}

// call begins a call to the handler of a node.
func (e *executor[T, L]) call(begin func(*migrationCalls)) error {
	if e.calls == nil {
		return errNoHandlers
	}
	begin(e.calls)
	return nil
}

// deleteObject deletes the object if it is still the same. One that is gone is what was
// wanted.
func (e *executor[T, L]) deleteObject(ctx context.Context, o T) error {
	if _, ok := e.deleted.Get(o.GetUID(), e.now()); ok {
		return nil
	}
	err := client.Of(e.client, e.kind, o.GetNamespace()).Delete(ctx, o.GetName(), *metav1.NewPreconditionDeleteOptions(string(o.GetUID())))
	if err != nil && !isMissing(err) {
		return fmt.Errorf("delete %s %s: %w", e.kind.Kind, reconcile.Key(o), err)
	}
	e.deleted.Put(o.GetUID(), e.now(), e.now(), recentFor)
	return nil
}

// createPod creates the pod. A pod of that name that was made for the same is the one that
// was to be created.
func (e *executor[T, L]) createPod(ctx context.Context, o T, p *corev1.Pod) error {
	pods := e.kube.CoreV1().Pods(p.Namespace)
	before := e.created(o, p.Name) // it is forgotten when the cache has the pod, which may be meanwhile
	defer e.rendered.begin(o, p)()
	err := reconcile.Complete(ctx, func(ctx context.Context) error {
		_, err := pods.Create(ctx, p, metav1.CreateOptions{})
		return err
	})
	if apierrors.IsAlreadyExists(err) {
		var there *corev1.Pod
		there, err = pods.Get(ctx, p.Name, metav1.GetOptions{})
		switch {
		case err != nil:
		case !launched.Alike(there, p):
			return &Refusal{Finding: instance.PodNameInUse(p.Name)}
		case there.DeletionTimestamp != nil:
			err = errors.New("the pod with this name is being deleted")
		case before:
			return apierrors.NewConflict(corev1.Resource("pods"), p.Name, errOldCache)
		}
	}
	switch {
	case err == nil:
		e.made.Put(reconcile.Key(o), p.Name, e.now(), 0)
		return nil
	case isRefusal(err), apierrors.IsInternalError(err): // as where the webhook that must permit it does not answer
		return &Refusal{podRefused(p, err), err}
	}
	return fmt.Errorf("create pod %s/%s: %w", p.Namespace, p.Name, err)
}

// created reports whether this process created the pod, which the cache does not have yet:
// what follows from its creation was done then, such as its event.
func (e *executor[T, L]) created(o T, name string) bool {
	last, ok := e.made.Get(reconcile.Key(o), e.now())
	return ok && last == name
}

// createClaim creates the claim. Whether one of that name is good is decided next.
func (e *executor[T, L]) createClaim(ctx context.Context, c *corev1.PersistentVolumeClaim) error {
	_, err := e.kube.CoreV1().PersistentVolumeClaims(c.Namespace).Create(ctx, c, metav1.CreateOptions{})
	switch {
	case err == nil:
		return nil
	case isRefusal(err):
		return &Refusal{vmi.Finding{Reason: instance.FailedCreate, Message: err.Error()}, err}
	}
	return fmt.Errorf("create claim %s/%s: %w", c.Namespace, c.Name, err)
}

// changeClaim writes labels of the claim if it is still the same. One that is gone needs none.
func (e *executor[T, L]) changeClaim(ctx context.Context, namespace string, a scheduler.ChangeClaim) error {
	labels := map[string]any{}
	for k, v := range a.Labels {
		labels[k] = v
	}
	for _, k := range a.Removed {
		labels[k] = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": a.UID, "labels": labels}})
	if err != nil {
		return err
	}
	now, err := e.kube.CoreV1().PersistentVolumeClaims(namespace).Patch(ctx, a.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil
	case err != nil:
		return fmt.Errorf("change claim %s/%s: %w", namespace, a.Name, err)
	}
	e.claims.Put(a.UID, now, e.now(), claimsFor)
	return nil
}

// deleteClaim deletes the claim if it is still the same. One that is gone is what was wanted.
func (e *executor[T, L]) deleteClaim(ctx context.Context, namespace string, a scheduler.DeleteClaim) error {
	err := e.kube.CoreV1().PersistentVolumeClaims(namespace).Delete(ctx, a.Name, *metav1.NewPreconditionDeleteOptions(string(a.UID)))
	if err != nil && !isMissing(err) {
		return fmt.Errorf("delete claim %s/%s: %w", namespace, a.Name, err)
	}
	e.claims.Put(a.UID, nil, e.now(), claimsFor)
	return nil
}

// setPodCondition writes the condition of the pod if it is still the same. A pod that is
// gone needs none.
func (e *executor[T, L]) setPodCondition(ctx context.Context, namespace string, a scheduler.SetPodCondition) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": a.UID}, "status": map[string]any{"conditions": []corev1.PodCondition{a.Condition}},
	})
	if err != nil {
		return err
	}
	// Conditions are merged by their type.
	_, err = e.kube.CoreV1().Pods(namespace).Patch(ctx, a.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err == nil {
		e.gates.Put(a.UID, a.Condition, e.now(), gatesFor)
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("write condition %s of pod %s/%s: %w", a.Condition.Type, namespace, a.Name, err)
	}
	return nil
}

// annotatePod writes the annotation of the pod if it is still the same, by the status: that
// needs no right to change pods. A pod that is gone needs none.
func (e *executor[T, L]) annotatePod(ctx context.Context, namespace string, a scheduler.AnnotatePod) error {
	value := any(a.Value)
	if a.Value == "" {
		value = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": a.UID, "annotations": map[string]any{a.Key: value}}})
	if err != nil {
		return err
	}
	_, err = e.kube.CoreV1().Pods(namespace).Patch(ctx, a.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("annotate pod %s/%s: %w", namespace, a.Name, err)
	}
	return nil
}

// isRefusal reports whether the API server understood the request and does not
// want the pod.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// deletePod deletes the pod if it is still the same. One that is gone is what was
// wanted.
func (e *executor[T, L]) deletePod(ctx context.Context, namespace string, a scheduler.DeletePod) error {
	err := reconcile.Complete(ctx, func(ctx context.Context) error {
		return e.kube.CoreV1().Pods(namespace).Delete(ctx, a.Name, *metav1.NewPreconditionDeleteOptions(string(a.UID)))
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s/%s: %w", namespace, a.Name, err)
	}
	e.deleted.Put(a.UID, e.now(), e.now(), recentFor)
	return nil
}
