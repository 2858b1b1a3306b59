package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// dataVolumeKind is the kind of the importer, without its schema.
const dataVolumeKind = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: datavolumes.cdi.kubevirt.io,
annotations: {api-approved.kubernetes.io: "unapproved, for a test"}},
spec: {group: cdi.kubevirt.io, scope: Namespaced, names: {kind: DataVolume, plural: datavolumes, singular: datavolume, listKind: DataVolumeList},
versions: [{name: v1beta1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// removeDataVolumes deletes the kind, and returns when it is gone: until then it takes no objects
// of the next test.
func removeDataVolumes(t *testing.T, all dynamic.Interface) {
	t.Helper()
	eventually(t, func() error {
		err := all.Resource(definitions).Delete(context.Background(), "datavolumes.cdi.kubevirt.io", metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("the kind is still there"), err)
	})
}

// filled is a VM whose disks are DataVolumes of these names.
func (s space) filled(name string, volumes ...string) {
	s.t.Helper()
	var options []vmitest.Option
	for _, v := range volumes {
		options = append(options, vmitest.WithDisk(v, vmi.VolumeSource{DataVolume: &vmi.DataVolumeVolume{Name: v}}))
	}
	v := &vmi.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: vmi.VirtualMachineSpec{
		RunStrategy: new(vmi.RunAlways), Template: &vmi.VirtualMachineInstanceTemplateSpec{Spec: vmitest.New(options...).Spec},
	}}
	for _, n := range volumes {
		v.Spec.DataVolumeTemplates = append(v.Spec.DataVolumeTemplates, vmi.DataVolumeTemplate{
			ObjectMeta: metav1.ObjectMeta{Name: n, Labels: map[string]string{"mine": "yes"}, Annotations: map[string]string{"note": "kept"}},
			Spec: vmi.DataVolumeSpec{
				Source: &vmi.DataVolumeSource{Blank: &vmi.DataVolumeBlankImage{}},
				PVC: &corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
			},
		})
	}
	_, err := world.vmis.VirtualMachines(s.name).Create(s.t.Context(), v, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

// awaitVM waits until the VM is as it is wanted.
func (s space) awaitPrinted(name string, want vmi.PrintableStatus, failure string) {
	s.t.Helper()
	eventually(s.t, func() error {
		v, err := world.vmis.VirtualMachines(s.name).Get(s.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		reason := ""
		if c := v.Status.Condition(vmi.ConditionFailure); c != nil {
			reason = c.Reason
		}
		if v.Status.PrintableStatus != want || reason != failure {
			return fmt.Errorf("VM %s is %q (%s), not %q (%s): %+v", name, v.Status.PrintableStatus, reason, want, failure, v.Status.Conditions)
		}
		return nil
	})
}

func (s space) hasInstance(name string) bool {
	s.t.Helper()
	l, err := s.vmis.List(s.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	require.NoError(s.t, err)
	return len(l.Items) == 1
}

// The importer is played: the kind comes while VMs wait for it, and its objects get
// their phases by hand.
func TestAVMIsStartedWhenItsDataVolumesAreFilled(t *testing.T) {
	s := newSpace(t)
	all, err := dynamic.NewForConfig(world.config)
	require.NoError(t, err)
	s.control(func(c *controller.Config) {
		c.Dynamic, err = dynamic.NewForConfig(asController())
		require.NoError(t, err)
	})
	s.filled("waits", "root")
	s.awaitPrinted("waits", vmi.StatusStopped, vm.DataVolumesNotServed)
	require.False(t, s.hasInstance("waits"))

	said, err := kubectl(t, dataVolumeKind, "apply", "--server-side", "-f", "-")
	require.NoError(t, err, said)
	t.Cleanup(func() { removeDataVolumes(t, all) })
	s.awaitPrinted("waits", vmi.StatusProvisioning, "")
	volumes := all.Resource(vm.DataVolumeResource).Namespace(s.name)
	made, err := volumes.Get(t.Context(), "root", metav1.GetOptions{})
	require.NoError(t, err)
	owner, err := world.vmis.VirtualMachines(s.name).Get(t.Context(), "waits", metav1.GetOptions{})
	require.NoError(t, err)
	require.True(t, metav1.IsControlledBy(made, owner))
	require.Equal(t, map[string]string{"mine": "yes", vmi.CreatedByLabel: string(owner.UID)}, made.GetLabels())
	require.Equal(t, "kept", made.GetAnnotations()["note"])
	size, _, _ := unstructured.NestedString(made.Object, "spec", "pvc", "resources", "requests", "storage")
	require.Equal(t, "1Gi", size)
	require.False(t, s.hasInstance("waits"))

	phase := func(name, phase string) {
		_, err := volumes.Patch(t.Context(), name, types.MergePatchType, []byte(fmt.Sprintf(`{"status":{"phase":%q}}`, phase)), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
	}
	phase("root", "ImportInProgress")
	phase("root", "Failed")
	s.awaitPrinted("waits", vmi.StatusDataVolumeError, vm.FailedDataVolumeImport)
	require.False(t, s.hasInstance("waits"))
	phase("root", "Succeeded")
	eventually(t, func() error {
		if !s.hasInstance("waits") {
			return fmt.Errorf("no VMI is made")
		}
		return nil
	})

	s.filled("binds", "first")
	s.awaitPrinted("binds", vmi.StatusProvisioning, "")
	phase("first", "WaitForFirstConsumer")
	eventually(t, func() error {
		if !s.hasInstance("binds") {
			return fmt.Errorf("no VMI is made: the claim waits for its first consumer, which is the VMI's pod")
		}
		return nil
	})

	foreign := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	foreign.SetGroupVersionKind(vm.DataVolumeKind)
	foreign.SetName("theirs")
	foreign.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "u", Controller: new(true)}})
	_, err = volumes.Create(t.Context(), foreign, metav1.CreateOptions{})
	require.NoError(t, err)
	s.filled("refused", "theirs")
	s.awaitPrinted("refused", vmi.StatusStopped, vm.DataVolumeNameTaken)
	require.False(t, s.hasInstance("refused"))
}

// The importer and the garbage collector of DataVolumes are played.
func TestTheDisksOfAPoolStayOrGoAsItAsks(t *testing.T) {
	said, err := kubectl(t, dataVolumeKind, "apply", "--server-side", "-f", "-")
	require.NoError(t, err, said)
	all, err := dynamic.NewForConfig(world.config)
	require.NoError(t, err)
	t.Cleanup(func() { removeDataVolumes(t, all) })
	pool := func(kept vmpool.PoolStatePreservation) (s space, of *vmpool.VirtualMachinePool, await func(want ...string)) {
		s = newSpace(t)
		s.control(s.asTheController(func(next http.RoundTripper) http.RoundTripper { return counter{next, s.writes} }), func(c *controller.Config) {
			c.Dynamic, err = dynamic.NewForConfig(asController())
			require.NoError(t, err)
		})
		s.play()
		p := poolOf(2)
		p.Spec.ScaleInStrategy = &vmpool.PoolScaleInStrategy{Proactive: &vmpool.PoolProactiveScaleIn{
			StatePreservation: &kept, SelectionPolicy: &vmpool.PoolSelectionPolicy{SortPolicy: new(vmpool.SortDescending)}}}
		v := &p.Spec.VirtualMachineTemplate.Spec
		v.DataVolumeTemplates = []vmi.DataVolumeTemplate{{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Spec: vmi.DataVolumeSpec{
			Source: &vmi.DataVolumeSource{Blank: &vmi.DataVolumeBlankImage{}}, PVC: &oneGi,
		}}}
		v.Template.Spec.Domain.Devices.Disks = append(v.Template.Spec.Domain.Devices.Disks, vmi.Disk{Name: "disk"})
		v.Template.Spec.Volumes = append(v.Template.Spec.Volumes, vmi.Volume{Name: "disk", VolumeSource: vmi.VolumeSource{DataVolume: &vmi.DataVolumeVolume{Name: "disk"}}})
		p = s.createPool(p)
		return s, p, func(want ...string) {
			t.Helper()
			eventually(t, func() error { return s.fill(t.Context(), all, p.Name, want) })
		}
	}
	disk := func(s space, name string) *unstructured.Unstructured {
		d, err := all.Resource(vm.DataVolumeResource).Namespace(s.name).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		return d
	}

	s, p, await := pool(vmpool.PreserveOffline)
	await("web-0", "web-1")
	first := disk(s, "disk-1")
	require.True(t, metav1.IsControlledBy(first, p), "they go with the pool")
	s.patchPool(`{"spec":{"replicas":1}}`)
	await("web-0")
	s.awaitGone("web-1")
	s.patchPool(`{"spec":{"replicas":2}}`)
	await("web-0", "web-1")
	require.Equal(t, first.GetUID(), disk(s, "disk-1").GetUID(), "the next VM of the name has the disk of the one before")

	s, _, await = pool(vmpool.PreserveNothing)
	await("web-0", "web-1")
	owner, err := s.vms().Get(t.Context(), "web-1", metav1.GetOptions{})
	require.NoError(t, err)
	require.True(t, metav1.IsControlledBy(disk(s, "disk-1"), owner), "it goes with its VM")
	s.patchPool(`{"spec":{"replicas":1}}`)
	await("web-0")
	s.awaitGone("web-1")
	s.patchPool(`{"spec":{"replicas":2}}`)
	await("web-0", "web-2") // the garbage collector has not deleted the disk of web-1
	require.NoError(t, all.Resource(vm.DataVolumeResource).Namespace(s.name).Delete(t.Context(), "disk-1", metav1.DeleteOptions{}))
	s.patchPool(`{"spec":{"replicas":3}}`)
	await("web-0", "web-2", "web-3") // nor its claim
}

// oneGi is a claim of 1Gi.
var oneGi = corev1.PersistentVolumeClaimSpec{
	AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
	Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
}

// fill makes and fills the claims of the DataVolumes that there are, and says whether the pool has these VMs and all of
// them are ready.
func (s space) fill(ctx context.Context, all dynamic.Interface, pool string, want []string) error {
	volumes := all.Resource(vm.DataVolumeResource).Namespace(s.name)
	l, err := volumes.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, d := range l.Items {
		if _, filled, _ := unstructured.NestedString(d.Object, "status", "phase"); filled {
			continue
		}
		_, err := world.kube.CoreV1().PersistentVolumeClaims(s.name).Create(ctx, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: d.GetName(), OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&d, vm.DataVolumeKind)}}, Spec: oneGi,
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		if _, err := volumes.Patch(ctx, d.GetName(), types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status"); err != nil {
			return err
		}
	}
	p, err := s.pools().Get(ctx, pool, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if names := s.vmNames(); !slices.Equal(names, want) || p.Status.ReadyReplicas != int32(len(want)) {
		return fmt.Errorf("the pool has the VMs %q, of which %d are ready, not %q", names, p.Status.ReadyReplicas, want)
	}
	return nil
}
