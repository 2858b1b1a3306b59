// Package contract holds what a client may rely on when it talks to an API
// server that serves the kinds of package vmi: the same tests run against the
// real one and against the one in memory that package fake is.
package contract

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/applyconfiguration"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/informer"
	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// timeout is how long a thing may take on a busy computer.
const timeout = 30 * time.Second

// Run runs all tests in the namespace, which must be empty.
func Run(t *testing.T, c *client.Client, namespace string) {
	s := suite{c, namespace}
	t.Run("an object is created, read, changed and deleted", s.life)
	t.Run("every kind has a client", s.kinds)
	t.Run("a kind of another group has objects of the cluster", s.cluster)
	t.Run("a write of an old version is a conflict", s.conflict)
	t.Run("the status is written apart from the rest", s.status)
	t.Run("the generation counts changes of the spec", s.generation)
	t.Run("a finalizer holds back a deletion", s.finalizer)
	t.Run("a dry run stores nothing", s.dryRun)
	t.Run("patches change what they name", s.patch)
	t.Run("a watch reports what changed since a version", s.watch)
	t.Run("a watch with a selector sees objects come and go", s.selection)
	t.Run("an informer follows", s.informer)
	t.Run("appliers of one object share its lists", s.apply)
	t.Run("appliers of one field are in conflict", s.applyConflict)
	t.Run("what an applier leaves out is removed", s.applyRemoves)
	t.Run("a set is scaled", s.scale)
	t.Run("a collection is deleted by its labels", s.collection)
	t.Run("a write that cannot be is refused", s.refusal)
}

type suite struct {
	c         *client.Client
	namespace string
}

func (s suite) vms() client.VirtualMachines { return s.c.VirtualMachines(s.namespace) }

// vm is a new VirtualMachine.
func (s suite) vm(name string, options ...vmitest.Option) *vmi.VirtualMachine {
	m := vmitest.NewVM(vmi.RunHalted, append(options, vmitest.WithName(name))...)
	m.ObjectMeta = metav1.ObjectMeta{Namespace: s.namespace, Name: name}
	return m
}

// created is a VirtualMachine that is there.
func (s suite) created(t *testing.T, m *vmi.VirtualMachine) *vmi.VirtualMachine {
	t.Helper()
	m, err := s.vms().Create(t.Context(), m, metav1.CreateOptions{})
	require.NoError(t, err)
	return m
}

func (s suite) life(t *testing.T) {
	ctx := t.Context()
	before := time.Now().Add(-2 * time.Second)
	m := s.created(t, s.vm("life"))
	require.NotEmpty(t, m.UID)
	require.NotEmpty(t, m.ResourceVersion)
	require.EqualValues(t, 1, m.Generation)
	require.True(t, m.CreationTimestamp.After(before), "%s", m.CreationTimestamp)

	_, err := s.vms().Create(ctx, s.vm("life"), metav1.CreateOptions{})
	require.True(t, apierrors.IsAlreadyExists(err), "%v", err)
	got, err := s.vms().Get(ctx, "life", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, m, got)

	got.Labels = map[string]string{"a": "b"}
	got, err = s.vms().Update(ctx, got, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NotEqual(t, m.ResourceVersion, got.ResourceVersion)
	same, err := s.vms().Update(ctx, got, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, got.ResourceVersion, same.ResourceVersion, "nothing changed")

	all, err := s.vms().List(ctx, metav1.ListOptions{LabelSelector: "a=b"})
	require.NoError(t, err)
	require.Len(t, all.Items, 1)
	require.NotEmpty(t, all.ResourceVersion)

	other := types.UID("00000000-0000-0000-0000-000000000000")
	err = s.vms().Delete(ctx, "life", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.NoError(t, s.vms().Delete(ctx, "life", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &m.UID}}))
	_, err = s.vms().Get(ctx, "life", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	err = s.vms().Delete(ctx, "life", metav1.DeleteOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)

	m = s.vm("")
	m.GenerateName = "life-"
	require.Regexp(t, "^life-[a-z0-9]{5}$", s.created(t, m).Name)
}

func (s suite) kinds(t *testing.T) {
	ctx := t.Context()
	migration := &vmi.VirtualMachineInstanceMigration{}
	migration.Spec.VMIName = "testvmi"
	migration.ObjectMeta = metav1.ObjectMeta{Name: "kinds"}
	_, err := s.c.VirtualMachineInstanceMigrations(s.namespace).Create(ctx, migration, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = s.c.KubeVirts(s.namespace).Create(ctx, &vmi.KubeVirt{ObjectMeta: metav1.ObjectMeta{Name: "kinds"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	require.NoError(t, err)
	instances, err := s.c.VirtualMachineInstances("").List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.NotNil(t, instances)
	migrations, err := s.c.VirtualMachineInstanceMigrations("").List(ctx, metav1.ListOptions{FieldSelector: "metadata.namespace=" + s.namespace})
	require.NoError(t, err)
	require.Len(t, migrations.Items, 1)
	require.Equal(t, "testvmi", migrations.Items[0].Spec.VMIName)
	for _, d := range kinds.Definitions() {
		o := client.Of(s.c, d.Untyped(), s.namespace)
		all, err := o.List(ctx, metav1.ListOptions{})
		require.NoError(t, err, d.Kind)
		require.IsType(t, d.NewList(), all)
		_, err = o.Get(ctx, "none", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%s: %v", d.Kind, err)
		for _, f := range d.Selectable {
			_, err := o.List(ctx, metav1.ListOptions{FieldSelector: f + "=none"})
			require.NoError(t, err, d.Kind)
		}
		_, err = o.List(ctx, metav1.ListOptions{FieldSelector: "spec.none=none"})
		require.True(t, apierrors.IsBadRequest(err), "%s: %v", d.Kind, err)
	}
}

func (s suite) conflict(t *testing.T) {
	ctx := t.Context()
	old := s.created(t, s.vm("conflict"))
	changed := old.DeepCopy()
	changed.Labels = map[string]string{"a": "b"}
	_, err := s.vms().Update(ctx, changed, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = s.vms().Update(ctx, changed, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	changed.Status.Created = true
	_, err = client.WriteStatus(ctx, s.vms(), old, changed)
	require.True(t, apierrors.IsConflict(err), "%v", err)
}

func (s suite) status(t *testing.T) {
	ctx := t.Context()
	m := s.vm("status")
	m.Status.Created = true
	m = s.created(t, m)
	require.False(t, m.Status.Created, "a creation writes no status")

	changed := m.DeepCopy()
	changed.Labels = map[string]string{"a": "b"}
	changed.Status.Created = true
	changed.Status.PrintableStatus = vmi.PrintableStatus("Running")
	m, err := s.vms().UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.True(t, m.Status.Created)
	require.Empty(t, m.Labels)
	require.EqualValues(t, 1, m.Generation)

	changed = m.DeepCopy()
	changed.Labels = map[string]string{"a": "b"}
	changed.Status.Created = false
	m, err = s.vms().Update(ctx, changed, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.True(t, m.Status.Created)
	require.NotEmpty(t, m.Labels)

	changed = m.DeepCopy()
	changed.Status.Created = false
	changed.Status.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionTrue}, metav1.Time{})
	m, err = client.WriteStatus(ctx, s.vms(), m, changed)
	require.NoError(t, err)
	require.False(t, m.Status.Created)
	require.Equal(t, vmi.PrintableStatus("Running"), m.Status.PrintableStatus)
	require.Len(t, m.Status.Conditions, 1)

	// As a whole: what is not in it is gone, and all else of the object stays.
	s.c.ReplaceStatuses(func() bool { return true })
	defer s.c.ReplaceStatuses(func() bool { return false })
	old := m
	changed = m.DeepCopy()
	changed.Labels = nil
	changed.Spec.RunStrategy = nil
	changed.Status = vmi.VirtualMachineStatus{Ready: true, PrintableStatus: vmi.PrintableStatus("Stopped")}
	m, err = client.ReplaceStatus(ctx, s.vms(), m, changed)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "b"}, m.Labels)
	is, err := s.vms().Get(ctx, m.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, old.Spec, is.Spec)
	require.Equal(t, old.Labels, is.Labels)
	require.Equal(t, old.Generation, is.Generation)
	require.Equal(t, changed.Status, is.Status)
	require.Equal(t, m.ResourceVersion, is.ResourceVersion)
	_, err = client.ReplaceStatus(ctx, s.vms(), old, changed)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	other := is.DeepCopy()
	other.UID = "other"
	_, err = client.ReplaceStatus(ctx, s.vms(), other, old)
	require.True(t, apierrors.IsConflict(err), "%v", err)
}

func (s suite) generation(t *testing.T) {
	m := s.created(t, s.vm("generation"))
	m.Annotations = map[string]string{"a": "b"}
	m, err := s.vms().Update(t.Context(), m, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 1, m.Generation)
	always := vmi.RunAlways
	m.Spec.RunStrategy = &always
	m.Generation = 7
	m, err = s.vms().Update(t.Context(), m, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 2, m.Generation)
}

func (s suite) finalizer(t *testing.T) {
	ctx := t.Context()
	m := s.vm("finalizer")
	m.Finalizers = []string{"example.com/a"}
	s.created(t, m)
	require.NoError(t, s.vms().Delete(ctx, m.Name, metav1.DeleteOptions{}))
	m, err := s.vms().Get(ctx, m.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.NotNil(t, m.DeletionTimestamp)
	m.Finalizers = nil
	_, err = s.vms().Update(ctx, m, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = s.vms().Get(ctx, m.Name, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func (s suite) dryRun(t *testing.T) {
	ctx := t.Context()
	dry := []string{metav1.DryRunAll}
	_, err := s.vms().Create(ctx, s.vm("dry"), metav1.CreateOptions{DryRun: dry})
	require.NoError(t, err)
	_, err = s.vms().Get(ctx, "dry", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)

	m := s.created(t, s.vm("dry"))
	changed := m.DeepCopy()
	changed.Labels = map[string]string{"a": "b"}
	changed, err = s.vms().Update(ctx, changed, metav1.UpdateOptions{DryRun: dry})
	require.NoError(t, err)
	require.NotEmpty(t, changed.Labels)
	require.NoError(t, s.vms().Delete(ctx, "dry", metav1.DeleteOptions{DryRun: dry}))
	got, err := s.vms().Get(ctx, "dry", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, m, got)
}

func (s suite) patch(t *testing.T) {
	ctx := t.Context()
	m := s.vm("patch")
	m.Labels = map[string]string{"a": "b", "c": "d"}
	s.created(t, m)
	m, err := s.vms().Patch(ctx, "patch", types.MergePatchType, []byte(`{"metadata": {"labels": {"a": null}}, "spec": {"runStrategy": "Always"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"c": "d"}, m.Labels)
	require.Equal(t, vmi.RunAlways, m.Spec.Strategy())
	m, err = s.vms().Patch(ctx, "patch", types.JSONPatchType, []byte(`[{"op": "replace", "path": "/metadata/labels/c", "value": "e"}]`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"c": "e"}, m.Labels)
	_, err = s.vms().Patch(ctx, "patch", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{})
	require.True(t, apierrors.IsUnsupportedMediaType(err), "%v", err)
	_, err = s.vms().Patch(ctx, "none", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

// next returns the next event of the watch that is no bookmark, as "TYPE name".
func next(t *testing.T, w watch.Interface) string {
	t.Helper()
	for {
		select {
		case e, ok := <-w.ResultChan():
			require.True(t, ok, "the watch has ended")
			if m, ok := e.Object.(metav1.Object); ok && e.Type != watch.Bookmark {
				return fmt.Sprintf("%s %s", e.Type, m.GetName())
			} else if e.Type == watch.Error {
				return fmt.Sprintf("%s %v", e.Type, apierrors.FromObject(e.Object))
			}
		case <-time.After(timeout):
			require.Fail(t, "no event")
		}
	}
}

func (s suite) watch(t *testing.T) {
	ctx := t.Context()
	first := s.created(t, s.vm("watch-1"))
	s.created(t, s.vm("watch-2"))
	require.NoError(t, s.vms().Delete(ctx, "watch-2", metav1.DeleteOptions{}))
	w, err := s.vms().Watch(ctx, metav1.ListOptions{ResourceVersion: first.ResourceVersion})
	require.NoError(t, err)
	defer w.Stop()
	require.Equal(t, "ADDED watch-2", next(t, w))
	require.Equal(t, "DELETED watch-2", next(t, w))
	first.Labels = map[string]string{"a": "b"}
	_, err = s.vms().Update(ctx, first, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, "MODIFIED watch-1", next(t, w))
}

func (s suite) selection(t *testing.T) {
	ctx := t.Context()
	m := s.created(t, s.vm("selected"))
	w, err := s.vms().Watch(ctx, metav1.ListOptions{ResourceVersion: m.ResourceVersion, LabelSelector: "in=yes"})
	require.NoError(t, err)
	defer w.Stop()
	for _, step := range []struct{ value, want string }{{"yes", "ADDED selected"}, {"no", "DELETED selected"}} {
		m.Labels = map[string]string{"in": step.value}
		m, err = s.vms().Update(ctx, m, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.Equal(t, step.want, next(t, w))
	}
}

func (s suite) informer(t *testing.T) {
	m := s.created(t, s.vm("informed", vmitest.WithLabel("x", "y")))
	i, err := informer.NewFiltered(s.vms(), informer.Selection{})
	require.NoError(t, err)
	done := make(chan struct{})
	defer func() { <-done }()
	ctx := t.Context()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		defer close(done)
		i.Run(stop)
	}()
	require.Eventually(t, func() bool { return i.HasSynced() }, timeout, time.Millisecond)
	vms := i.Lister().Namespace(s.namespace)
	held, err := vms.Get("informed")
	require.NoError(t, err)
	require.Equal(t, m.UID, held.UID)
	require.NoError(t, s.vms().Delete(ctx, "informed", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool { _, err := vms.Get("informed"); return apierrors.IsNotFound(err) }, timeout, time.Millisecond)
}

// applied is what an applier sets in a VirtualMachine: these disks.
func (s suite) applied(name string, disks ...string) *applyconfiguration.VirtualMachineApplyConfiguration {
	devices := applyconfiguration.Devices()
	for _, d := range disks {
		devices.WithDisks(applyconfiguration.Disk().WithName(d).WithDisk(applyconfiguration.DiskTarget().WithBus(vmi.DiskBusVirtio)))
	}
	domain := applyconfiguration.DomainSpec().WithDevices(devices)
	return applyconfiguration.VirtualMachine(name, s.namespace).WithSpec(applyconfiguration.VirtualMachineSpec().
		WithRunStrategy(vmi.RunHalted).
		WithTemplate(applyconfiguration.VirtualMachineInstanceTemplateSpec().WithSpec(applyconfiguration.VirtualMachineInstanceSpec().WithDomain(domain))))
}

func disks(m *vmi.VirtualMachine) []string {
	out := []string{}
	for _, d := range m.Spec.Template.Spec.Domain.Devices.Disks {
		out = append(out, d.Name)
	}
	return out
}

func (s suite) apply(t *testing.T) {
	ctx := t.Context()
	m, err := s.vms().Apply(ctx, s.applied("apply", "a", "b"), metav1.ApplyOptions{FieldManager: "first"})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, disks(m))
	w := s.applied("apply", "c")
	w.WithLabels(map[string]string{"by": "second"})
	m, err = s.vms().Apply(ctx, w, metav1.ApplyOptions{FieldManager: "second"})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"a", "b", "c"}, disks(m))
	require.Equal(t, map[string]string{"by": "second"}, m.Labels)
	require.EqualValues(t, 2, m.Generation)
	again, err := s.vms().Apply(ctx, w, metav1.ApplyOptions{FieldManager: "second"})
	require.NoError(t, err)
	require.Equal(t, m.ResourceVersion, again.ResourceVersion, "nothing changed")
}

func (s suite) applyConflict(t *testing.T) {
	ctx := t.Context()
	_, err := s.vms().Apply(ctx, s.applied("fight", "a"), metav1.ApplyOptions{FieldManager: "first"})
	require.NoError(t, err)
	other := s.applied("fight", "a")
	other.Spec.Template.Spec.Domain.Devices.Disks[0].Disk.WithBus(vmi.DiskBusSATA)
	_, err = s.vms().Apply(ctx, other, metav1.ApplyOptions{FieldManager: "second"})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	m, err := s.vms().Apply(ctx, other, metav1.ApplyOptions{FieldManager: "second", Force: true})
	require.NoError(t, err)
	require.Equal(t, vmi.DiskBusSATA, m.Spec.Template.Spec.Domain.Devices.Disks[0].Disk.Bus)

	m.Spec.Template.Spec.Domain.Devices.Disks[0].Disk.Bus = vmi.DiskBusSCSI
	_, err = s.vms().Update(ctx, m, metav1.UpdateOptions{FieldManager: "third"})
	require.NoError(t, err)
	_, err = s.vms().Apply(ctx, other, metav1.ApplyOptions{FieldManager: "second"})
	require.True(t, apierrors.IsConflict(err), "%v", err)
}

func (s suite) applyRemoves(t *testing.T) {
	ctx := t.Context()
	_, err := s.vms().Apply(ctx, s.applied("removes", "a", "b"), metav1.ApplyOptions{FieldManager: "first"})
	require.NoError(t, err)
	_, err = s.vms().Apply(ctx, s.applied("removes", "b"), metav1.ApplyOptions{FieldManager: "second"})
	require.NoError(t, err)
	m, err := s.vms().Apply(ctx, s.applied("removes"), metav1.ApplyOptions{FieldManager: "first"})
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, disks(m), "the second applier wants b")
}

func (s suite) scale(t *testing.T) {
	ctx := t.Context()
	sets := s.c.VirtualMachineInstanceReplicaSets(s.namespace)
	set := vmitest.NewReplicaSet(2, vmitest.WithName("scale"))
	set.ObjectMeta = metav1.ObjectMeta{Name: "scale"}
	set, err := sets.Create(ctx, set, metav1.CreateOptions{})
	require.NoError(t, err)
	changed := set.DeepCopy()
	changed.Status.Replicas, changed.Status.LabelSelector = 1, "set=scale"
	_, err = client.WriteStatus(ctx, sets, set, changed)
	require.NoError(t, err)

	v, err := sets.GetScale(ctx, "scale", metav1.GetOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 2, v.Spec.Replicas)
	require.Equal(t, autoscalingv1.ScaleStatus{Replicas: 1, Selector: "set=scale"}, v.Status)
	old := *v
	v.Spec.Replicas = 5
	v, err = sets.UpdateScale(ctx, "scale", v, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 5, v.Spec.Replicas)
	_, err = sets.UpdateScale(ctx, "scale", &old, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	set, err = sets.Get(ctx, "scale", metav1.GetOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 5, set.Spec.Wanted())
	require.EqualValues(t, 2, set.Generation)
	require.Len(t, set.Spec.Template.ObjectMeta.Labels, 1, "nothing else has changed")
}

func (s suite) collection(t *testing.T) {
	for i, in := range []string{"yes", "yes", "no"} {
		m := s.vm(fmt.Sprintf("collection-%d", i))
		m.Labels = map[string]string{"collected": in}
		s.created(t, m)
	}
	require.NoError(t, s.vms().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "collected=yes"}))
	left, err := s.vms().List(t.Context(), metav1.ListOptions{LabelSelector: "collected"})
	require.NoError(t, err)
	require.Len(t, left.Items, 1)
	require.Equal(t, "collection-2", left.Items[0].Name)
}
