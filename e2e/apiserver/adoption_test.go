package apiserver

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
)

// tenant is an account of the name in the namespace that may do everything with its
// pods, by a token of the API server.
func (s space) tenant(name string) kubernetes.Interface {
	s.t.Helper()
	ctx := s.t.Context()
	_, err := world.kube.CoreV1().ServiceAccounts(s.name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	_, err = world.kube.RbacV1().Roles(s.name).Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods", "pods/status", "pods/ephemeralcontainers", "events"}, Verbs: []string{"*"}},
			{APIGroups: []string{vmi.VirtualMachineInstances.Group}, Resources: []string{"*"}, Verbs: []string{"*"}},
		},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	_, err = world.kube.RbacV1().RoleBindings(s.name).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.name, Name: name}},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	kube, err := kubernetes.NewForConfig(withToken(s.t, world.config, s.name, name))
	require.NoError(s.t, err)
	eventually(s.t, func() error {
		_, err := kube.CoreV1().Pods(s.name).List(ctx, metav1.ListOptions{})
		return err
	})
	return kube
}

func TestAttackAUserMakesNoPodThatIsTakenForALauncher(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	v := s.create(guest("vm"))
	rendered, err := pod.Render(v, pod.Config{Launcher: pod.Launcher{Image: "podvisor/virt-launcher:v1", AllowEmulation: true}})
	require.NoError(t, err)
	rendered.Spec.Containers[0].Image, rendered.Spec.Containers[0].Command = "example/mine", []string{"sh"}
	bare := rendered.DeepCopy()
	bare.Labels, bare.OwnerReferences = map[string]string{"app": "web"}, nil
	labels := map[string]string{vmi.AppLabel: vmi.LauncherApp, vmi.CreatedByLabel: string(v.UID)}
	loose := []metav1.OwnerReference{{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstance", Name: "vm", UID: v.UID}}
	patchOf := func(metadata map[string]any) []byte {
		text, err := json.Marshal(map[string]any{"metadata": metadata})
		require.NoError(t, err)
		return text
	}
	// An account of the component's name proves nothing.
	for _, account := range []string{"tenant", "virt-handler"} {
		pods := s.tenant(account).CoreV1().Pods(s.name)
		refused := func(what string, err error) {
			t.Helper()
			require.True(t, apierrors.IsForbidden(err), "%s: %v", what, err)
			require.Regexp(t, "by virt-controller only|only virt-controller makes", err.Error(), what)
		}
		make := func(change func(*corev1.Pod)) error {
			p := bare.DeepCopy()
			change(p)
			_, err := pods.Create(t.Context(), p, dryRun)
			return err
		}
		refused("the whole pod", make(func(p *corev1.Pod) { p.Labels, p.OwnerReferences = rendered.Labels, rendered.OwnerReferences }))
		refused("the owner", make(func(p *corev1.Pod) { p.OwnerReferences = rendered.OwnerReferences }))
		require.NoError(t, make(func(p *corev1.Pod) { p.OwnerReferences = loose }), "a pod that is deleted with the VMI")
		refused("the label of launchers", make(func(p *corev1.Pod) { p.Labels = map[string]string{vmi.AppLabel: vmi.LauncherApp} }))
		refused("the label with the UID", make(func(p *corev1.Pod) { p.Labels = map[string]string{vmi.CreatedByLabel: string(v.UID)} }))

		_, err := pods.Create(t.Context(), bare, metav1.CreateOptions{})
		require.NoError(t, err, "a pod of the name that is not like a launcher")
		for _, sub := range [][]string{nil, {"status"}} {
			_, err = pods.Patch(t.Context(), bare.Name, types.MergePatchType, patchOf(map[string]any{"labels": labels}), metav1.PatchOptions{}, sub...)
			refused("labels that are added later", err)
		}
		_, err = pods.Patch(t.Context(), bare.Name, types.MergePatchType, patchOf(map[string]any{"ownerReferences": rendered.OwnerReferences}), metav1.PatchOptions{})
		refused("an owner that is added later", err)
		_, err = pods.Patch(t.Context(), bare.Name, types.MergePatchType, patchOf(map[string]any{"ownerReferences": loose}), metav1.PatchOptions{})
		require.NoError(t, err)
		_, err = pods.Patch(t.Context(), bare.Name, types.MergePatchType, patchOf(map[string]any{"ownerReferences": rendered.OwnerReferences}), metav1.PatchOptions{})
		refused("an owner that controls later", err)
		stop := s.control()
		require.Contains(t, s.awaitReason("vm", vmi.ConditionSynchronized, "PodNameTaken").Message, "delete it")
		stop()
		require.NoError(t, pods.Delete(t.Context(), bare.Name, atOnce))
	}
}

func TestAttackAVMIsControllerOfAnotherNamespaceMakesNoLauncher(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	p := launcherOf(t, s.name)
	_, err := s.tenant("virt-controller").CoreV1().Pods(s.name).Create(t.Context(), p, dryRun)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.Regexp(t, "by virt-controller only|virt-controller may make no pod in namespace", err.Error()) // of the one or the other policy
}

// What users and Kubernetes do to launcher pods is left to them.
func TestALauncherPodIsWrittenByOthersButForWhatMakesItOne(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	v := s.start("vm")
	p := s.pod(v)
	pods := s.tenant("tenant").CoreV1().Pods(s.name)
	patch := func(data string, sub ...string) error {
		_, err := pods.Patch(t.Context(), p.Name, types.StrategicMergePatchType, []byte(data), metav1.PatchOptions{}, sub...)
		return err
	}
	require.NoError(t, patch(`{"metadata":{"labels":{"team":"a"},"annotations":{"note":"b"}}}`))
	require.NoError(t, patch(`{"spec":{"ephemeralContainers":[{"name":"debug","image":"example/tools","securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}]}}`, "ephemeralcontainers"))
	require.NoError(t, patch(`{"status":{"message":"kubelet"}}`, "status"))
	for _, data := range []string{
		`{"metadata":{"labels":{"kubevirt.io":null}}}`, `{"metadata":{"labels":{"kubevirt.io":"other"}}}`, `{"metadata":{"labels":{"kubevirt.io/created-by":"other"}}}`,
		`{"metadata":{"labels":{"kubevirt.io/created-by":null}}}`,
		`{"metadata":{"ownerReferences":[{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstance","name":"x","uid":"x","controller":true},{"uid":"` + string(v.UID) + `","controller":false}]}}`,
	} {
		require.True(t, apierrors.IsForbidden(patch(data)), data)
	}
	require.NoError(t, patch(`{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"`+string(v.UID)+`"}]}}`), "as the garbage collector orphans it")
	require.NoError(t, pods.Delete(t.Context(), p.Name, atOnce))
}
