package apiserver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestAttackTheTokenOfTheControllerMakesNothingButClaimsForState(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	kube, err := kubernetes.NewForConfig(withToken(t, world.config, home, "virt-controller"))
	require.NoError(t, err)
	claims := kube.CoreV1().PersistentVolumeClaims(s.name)
	v := vmitest.New(vmitest.WithName("web"))
	v.Namespace = s.name
	config := pod.Config{}
	config.Cluster.Pods.StateStorageClass = "fast"
	rendered := pod.StateClaim(v, config)
	_, err = claims.Create(t.Context(), rendered, dryRun)
	require.NoError(t, err, "what virt-controller makes is permitted")
	for name, change := range map[string]func(*corev1.PersistentVolumeClaim){
		"without an owner": func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = nil },
		"of another kind": func(c *corev1.PersistentVolumeClaim) {
			c.OwnerReferences[0].Kind, c.OwnerReferences[0].APIVersion = "Pod", "v1"
		},
		"of another name":   func(c *corev1.PersistentVolumeClaim) { c.Name = "data" },
		"of another VMI":    func(c *corev1.PersistentVolumeClaim) { c.Name = "persistent-state-for-other" },
		"without the label": func(c *corev1.PersistentVolumeClaim) { c.Labels = nil },
		"that is large": func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("1Ti")
		},
		"of a volume": func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "theirs" },
		"of a source": func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "theirs"}
		},
		"of an importer": func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{"cdi.kubevirt.io/storage.import.secretName": "theirs"}
		},
		"that an importer knows": func(c *corev1.PersistentVolumeClaim) { c.Labels["cdi.kubevirt.io/storage.contentType"] = "kubevirt" },
		"that stays":             func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{"example.com/stays"} },
		"that is a device":       func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) },
		"that many may have": func(c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		},
	} {
		c := rendered.DeepCopy()
		change(c)
		_, err := claims.Create(t.Context(), c, dryRun)
		require.True(t, apierrors.IsForbidden(err), "a claim %s: %v", name, err)
		require.ErrorContains(t, err, "virt-controller may make", "a claim %s", name)
	}
	// A target has a claim of its own, with another name and label.
	config.Role = pod.Role{Name: vmi.RoleTarget, For: pod.Object{Name: "move", UID: "job"}}
	second := pod.StateClaim(v, config)
	_, err = claims.Create(t.Context(), second, dryRun)
	require.NoError(t, err, "what virt-controller makes is permitted")
	for name, change := range map[string]func(*corev1.PersistentVolumeClaim){
		"of a start too":    func(c *corev1.PersistentVolumeClaim) { c.Labels[vmi.StateLabel] = "web" },
		"without the label": func(c *corev1.PersistentVolumeClaim) { c.Labels = nil },
		"of another VMI":    func(c *corev1.PersistentVolumeClaim) { c.Name = "persistent-state-for-other-12345678" },
	} {
		c := second.DeepCopy()
		change(c)
		_, err := claims.Create(t.Context(), c, dryRun)
		require.True(t, apierrors.IsForbidden(err), "a claim %s: %v", name, err)
	}
	admins := world.kube.CoreV1().PersistentVolumeClaims(s.name)
	second, err = admins.Create(t.Context(), second, metav1.CreateOptions{})
	require.NoError(t, err)
	theirs := rendered.DeepCopy()
	theirs.Name, theirs.OwnerReferences, theirs.Labels = "data", nil, nil
	_, err = admins.Create(t.Context(), theirs, metav1.CreateOptions{})
	require.NoError(t, err)
	dry := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	patch := func(claim, text string) error {
		_, err := claims.Patch(t.Context(), claim, types.MergePatchType, []byte(text), dry)
		return err
	}
	require.NoError(t, patch(second.Name, `{"metadata": {"labels": {"persistent-state-for": "web", "kubevirt.io/migrationName": null}}}`))
	for what, p := range map[string]struct{ claim, text string }{
		"of another VMI": {second.Name, `{"metadata": {"labels": {"persistent-state-for": "other"}}}`},
		"with a label":   {second.Name, `{"metadata": {"labels": {"persistent-state-for": "web", "mine": "yes"}}}`},
		"without owner":  {second.Name, `{"metadata": {"ownerReferences": null}}`},
		"annotated":      {second.Name, `{"metadata": {"annotations": {"podvisor.io/migration": "other"}}}`},
		"of a user":      {"data", `{"metadata": {"labels": {"persistent-state-for": "web"}}}`},
		"taken from a user": {"data", `{"metadata": {"labels": {"persistent-state-for": "web"}, "ownerReferences": [` +
			`{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "web", "uid": "x"}]}}`},
	} {
		err := patch(p.claim, p.text)
		require.True(t, apierrors.IsForbidden(err), "a claim %s: %v", what, err)
		require.ErrorContains(t, err, "virt-controller may", "a claim %s", what)
	}
	err = claims.Delete(t.Context(), "data", metav1.DeleteOptions{})
	require.True(t, apierrors.IsForbidden(err), err)
	require.NoError(t, claims.Delete(t.Context(), second.Name, metav1.DeleteOptions{}))
	config.Role = pod.Role{}
	for _, there := range []string{"kube-system", home} {
		c := rendered.DeepCopy()
		c.Namespace = there
		_, err := kube.CoreV1().PersistentVolumeClaims(there).Create(t.Context(), c, dryRun)
		require.True(t, apierrors.IsForbidden(err), "%s: %v", there, err)
	}
}

func TestAVMIWithPersistentStateHasAClaimAndSaysWhyNot(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	keeping := func(name string) *vmi.VirtualMachineInstance {
		v := guest(name)
		v.Spec.Domain.Devices.TPM = &vmi.TPM{Persistent: new(true)}
		return s.create(v)
	}
	claims := world.kube.CoreV1().PersistentVolumeClaims(s.name)
	v := keeping("keeps")
	p := s.pod(v)
	require.Equal(t, "podvisor/virt-launcher-full:v1", p.Spec.Containers[0].Image)
	c, err := claims.Get(t.Context(), "persistent-state-for-keeps", metav1.GetOptions{})
	require.NoError(t, err, "the claim is there before the pod")
	require.Equal(t, v.UID, c.OwnerReferences[0].UID)

	foreign := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "persistent-state-for-taken", Namespace: s.name}}
	foreign.Spec = pod.StateClaim(v, pod.Config{}).Spec
	_, err = claims.Create(t.Context(), foreign, metav1.CreateOptions{})
	require.NoError(t, err)
	v = keeping("taken")
	eventually(t, func() error {
		now, err := s.vmis.Get(t.Context(), v.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if c := now.Status.Condition(vmi.ConditionSynchronized); c == nil || c.Reason != "StateClaimUnusable" || !strings.Contains(c.Message, "persistent-state-for=taken") {
			return fmt.Errorf("conditions: %+v", now.Status.Conditions)
		}
		return nil
	})
	// No controller that would remove the finalizer runs here.
	_, err = claims.Patch(t.Context(), foreign.Name, types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.NoError(t, claims.Delete(t.Context(), foreign.Name, metav1.DeleteOptions{}))
	s.pod(v)
}
