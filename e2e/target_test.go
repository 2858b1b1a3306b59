package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// A migration is played here as far as its target waits: what virt-controller writes for
// it, the test writes with its account.
func TestASecondPodOfAVMIWaitsOnAnotherNodeAndDisturbsNothing(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.create(guest("moves", cloudConfig("hostname: moves")))
	v := s.awaitSteady("moves")
	first := s.pod(v)
	traces := s.traces(v)
	qemu, before := traces.process("qemu-system"), s.events(v)

	second := s.target(v, first)
	node := second.Spec.NodeName
	require.NotEqual(t, first.Spec.NodeName, node, "they are on two nodes")
	s.moving(v, second)
	s.awaitPut(v, node)
	_, err := world.vmis.VirtualMachineInstances(s.name).GuestInfo(t.Context(), v.Name)
	require.NoError(t, err, "a call reaches the pod that the VMI runs in")

	waiting := tracesOf(t, second)
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		require.NotEmpty(t, waiting.process("virt-launcher"))
		require.False(t, slices.ContainsFunc(waiting.processes(), func(p string) bool { return strings.Contains(p, "qemu-system") }), "it starts no guest")
	}
	require.Contains(t, s.deleted(second), "Cancelled: the launcher was stopped before the guest ran")
	eventually(t, soon, func() error {
		if left := waiting.processes(); len(left) > 0 {
			return fmt.Errorf("processes are left: %q", left)
		}
		return nil
	})

	after := s.get("moves")
	require.Equal(t, v.Status.Phase, after.Status.Phase)
	require.Equal(t, v.Status.NodeName, after.Status.NodeName)
	require.Equal(t, v.Status.Conditions, after.Status.Conditions)
	require.Equal(t, v.Status.Interfaces, after.Status.Interfaces)
	require.Equal(t, &vmi.MigrationState{MigrationUID: "m1", SourceNode: first.Spec.NodeName, TargetNode: node, TargetPod: second.Name}, after.Status.MigrationState)
	require.Equal(t, qemu, traces.process("qemu-system"), "the guest runs on")
	require.Len(t, s.events(v), len(before), "and nothing is said about it")
	s.delete("moves")
	s.awaitGone(v)
	traces.awaitNone()
}

// asController is the configuration of a client with the account of virt-controller.
func asController() *rest.Config {
	cfg := rest.CopyConfig(world.config)
	cfg.Impersonate.UserName = "system:serviceaccount:" + install.Namespace + ":virt-controller"
	return cfg
}

// target makes the pod that a migration moves the VMI to, and waits until it runs.
func (s space) target(v *vmi.VirtualMachineInstance, first corev1.Pod) corev1.Pod {
	s.t.Helper()
	kube, err := kubernetes.NewForConfig(asController())
	require.NoError(s.t, err)
	m := &vmi.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Name: "move"}}
	m.Spec.VMIName = v.Name
	m, err = world.vmis.VirtualMachineInstanceMigrations(s.name).Create(s.t.Context(), m, metav1.CreateOptions{})
	require.NoError(s.t, err)
	compute := first.Spec.Containers[0]
	p, err := pod.Render(v, pod.Config{
		Launcher: pod.Launcher{Build: launched.Build(&first), Image: compute.Image, AllowEmulation: slices.Contains(compute.Args, "--allow-emulation")},
		Role:     pod.Target(m),
	})
	require.NoError(s.t, err)
	p, err = kube.CoreV1().Pods(s.name).Create(s.t.Context(), p, metav1.CreateOptions{})
	require.NoError(s.t, err)
	eventually(s.t, long, func() error {
		if p, err = world.kube.CoreV1().Pods(s.name).Get(s.t.Context(), p.Name, metav1.GetOptions{}); err == nil && p.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("pod %s is %s: %+v", p.Name, p.Status.Phase, p.Status.Conditions)
		}
		return err
	})
	return *p
}

// moving writes that a migration moves the VMI to the pod.
func (s space) moving(v *vmi.VirtualMachineInstance, to corev1.Pod) {
	s.t.Helper()
	c, err := client.New(asController())
	require.NoError(s.t, err)
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"activePods":     map[types.UID]string{to.UID: to.Spec.NodeName},
		"migrationState": vmi.MigrationState{MigrationUID: "m1", SourceNode: v.Status.NodeName, TargetNode: to.Spec.NodeName, TargetPod: to.Name},
	}})
	require.NoError(s.t, err)
	_, err = c.VirtualMachineInstances(s.name).Patch(s.t.Context(), v.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	require.NoError(s.t, err)
}

// awaitPut waits until the handler of the node has put the VMI to a launcher as to a
// target.
func (s space) awaitPut(v *vmi.VirtualMachineInstance, node string) {
	s.t.Helper()
	eventually(s.t, soon, func() error {
		handlers, err := world.kube.CoreV1().Pods(install.Namespace).List(s.t.Context(), metav1.ListOptions{LabelSelector: "kubevirt.io=virt-handler", FieldSelector: "spec.nodeName=" + node})
		if err != nil || len(handlers.Items) != 1 {
			return fmt.Errorf("node %s has %d handlers: %w", node, len(handlers.Items), err)
		}
		log, err := world.kube.CoreV1().Pods(install.Namespace).GetLogs(handlers.Items[0].Name, &corev1.PodLogOptions{}).DoRaw(s.t.Context())
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, "put the VMI to the launcher") && strings.Contains(line, s.name+"/"+v.Name) && strings.Contains(line, string(vmi.RoleTarget)) {
				return nil
			}
		}
		return fmt.Errorf("the handler of node %s has not put %s", node, v.Name)
	})
}

// deleted deletes the pod and returns with what its launcher ended when it is gone.
func (s space) deleted(p corev1.Pod) (message string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), long)
	defer cancel()
	changes, err := world.kube.CoreV1().Pods(s.name).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + p.Name})
	require.NoError(s.t, err)
	defer changes.Stop()
	require.NoError(s.t, world.kube.CoreV1().Pods(s.name).Delete(ctx, p.Name, metav1.DeleteOptions{}))
	for e := range changes.ResultChan() {
		now, ok := e.Object.(*corev1.Pod)
		require.True(s.t, ok, "%+v", e.Object)
		for _, c := range now.Status.ContainerStatuses {
			if c.Name == vmi.ComputeContainer && c.State.Terminated != nil {
				message = c.State.Terminated.Message
			}
		}
		if e.Type == watch.Deleted {
			return message
		}
	}
	require.Fail(s.t, "the pod is still there", p.Name)
	return ""
}
