package apiserver

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

func TestAHandlerWritesVMIsOfItsNodeOnly(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	v := s.start("vm")
	tests := []struct {
		name, node string
		change     func(*vmi.VirtualMachineInstanceStatus)
		message    string
	}{
		{"another node's handler", "n2", phase(vmi.PhaseFailed), "may not change a VMI of another node"},
		{"a handler whose token names no node", "", phase(vmi.PhaseFailed), "does not say which node"},
		{"a handler that moves its VMI to another node", "n1", func(s *vmi.VirtualMachineInstanceStatus) { s.NodeName = "n2" }, "may not change a VMI of another node"},
		{"a handler that removes the node of its VMI", "n1", func(s *vmi.VirtualMachineInstanceStatus) { s.NodeName = "" }, "may not change a VMI of another node"},
		{"a handler that moves another node's VMI to its own", "n2", func(s *vmi.VirtualMachineInstanceStatus) { s.NodeName = "n2" }, "may not change a VMI of another node"},
		{"a handler that points to another pod", "n1", func(s *vmi.VirtualMachineInstanceStatus) { s.ActivePods = map[types.UID]string{"x": "n1"} }, "may not change the pods of a VMI"},
		{"a handler that has its VMI move", "n1", func(s *vmi.VirtualMachineInstanceStatus) { s.MigrationState = &vmi.MigrationState{TargetNode: "n2"} }, "only what it reports: []"},
		{"a handler that has another node's VMI move to its own", "n2", func(s *vmi.VirtualMachineInstanceStatus) { s.MigrationState = &vmi.MigrationState{TargetNode: "n2"} }, "may not change a VMI of another node"},
		{"a handler that removes the pod", "n1", func(s *vmi.VirtualMachineInstanceStatus) { s.ActivePods = nil }, "may not change the pods of a VMI"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := s.report(v, tt.node, tt.change)
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			require.ErrorContains(t, err, tt.message)
		})
	}
	require.NoError(t, s.report(v, "n1", phase(vmi.PhaseSucceeded)))
}

// move writes, as virt-controller, that a migration moves the VMI from n1 to the pod on n2.
func (s space) move(v *vmi.VirtualMachineInstance, second *corev1.Pod, change ...func(*vmi.VirtualMachineInstanceStatus)) {
	s.t.Helper()
	c, err := client.New(asController())
	require.NoError(s.t, err)
	require.NoError(s.t, retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the controller writes too
		v, err := c.VirtualMachineInstances(s.name).Get(s.t.Context(), v.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		moved := v.DeepCopy()
		moved.Status.ActivePods[second.UID] = "n2"
		moved.Status.MigrationState = &vmi.MigrationState{MigrationUID: "m1", SourceNode: "n1", TargetNode: "n2", TargetPod: second.Name}
		for _, f := range change {
			f(&moved.Status)
		}
		_, err = client.WriteStatus(s.t.Context(), c.VirtualMachineInstances(s.name), v, moved)
		return err
	}))
}

func TestAHandlerWritesOfAVMIThatMovesToItsNodeWhatATargetReports(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	v := s.start("vm")
	second := s.target(v)
	s.move(v, second)
	type status = vmi.VirtualMachineInstanceStatus
	// The controller writes meanwhile.
	report := func(node string, change func(*status)) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error { return s.report(s.latest(v), node, change) })
	}
	for _, tt := range []struct {
		name, node string
		change     func(*status)
		message    string
	}{
		{"the target's takes the VMI in two writes", "n2", func(s *status) { s.NodeName = "n2" }, "may change of its status only the migrationState"},
		{"the target's ends the VMI", "n2", phase(vmi.PhaseFailed), "may change of its status only the migrationState"},
		{"the target's writes a condition", "n2", func(s *status) { s.SetCondition(vmi.Condition{Type: "Ready", Status: "False"}, metav1.Now()) }, "may change of its status only the migrationState"},
		{"the target's removes a field", "n2", func(s *status) { s.Interfaces, s.Conditions = nil, nil }, "may change of its status only the migrationState"},
		{"the target's points to another pod", "n2", func(s *status) { s.ActivePods["third"] = "n2" }, "may change of its status only the migrationState"},
		{"the target's moves the VMI elsewhere", "n2", func(s *status) { s.MigrationState.TargetNode = "n3" }, "may change of status.migrationState only what it reports: [targetNodeAddress,"},
		{"the target's names another migration", "n2", func(s *status) { s.MigrationState.MigrationUID = "m2" }, "only what it reports"},
		{"the target's ends the migration", "n2", func(s *status) { s.MigrationState.Completed = true }, "only what it reports"},
		{"the target's removes the migration", "n2", func(s *status) { s.MigrationState = nil }, "only what it reports"},
		{"the source's moves the VMI elsewhere", "n1", func(s *status) { s.MigrationState.TargetNode = "n3" }, "only what it reports: [startTimestamp,"},
		{"the source's reports for the target", "n1", func(s *status) { s.MigrationState.TargetNodeDomainDetected = true }, "only what it reports: [startTimestamp,"},
		{"the source's says that it has succeeded", "n1", func(s *status) { s.MigrationState.Completed = true }, "may end its migration only as one that has failed"},
		{"the source's removes the migration", "n1", func(s *status) { s.MigrationState = nil }, "only what it reports: [startTimestamp,"},
		{"a third one", "n3", func(s *status) { s.MigrationState.TargetNodeAddress = "192.0.2.1" }, "may not change a VMI of another node"},
	} {
		err := report(tt.node, tt.change)
		require.True(t, apierrors.IsForbidden(err), "%s: %v", tt.name, err)
		require.ErrorContains(t, err, tt.message, tt.name)
	}
	reports := func(s *status) {
		m := s.MigrationState
		m.TargetNodeAddress, m.TargetDirectMigrationNodePorts = "192.0.2.1", map[string]int{"8186": 0}
		m.TargetCPUSet, m.TargetNodeTopology = []int{2, 3}, "{}"
		m.TargetNodeDomainDetected, m.TargetNodeDomainReadyTimestamp = true, new(metav1.Now())
	}
	require.NoError(t, report("n2", reports))
	now := s.latest(v).Status.MigrationState
	require.Equal(t, map[string]int{"8186": 0}, now.TargetDirectMigrationNodePorts)
	require.Equal(t, []int{2, 3}, now.TargetCPUSet)
	require.Equal(t, "{}", now.TargetNodeTopology)
	require.True(t, now.TargetNodeDomainDetected)
	require.NotNil(t, now.TargetNodeDomainReadyTimestamp)
	require.NoError(t, report("n1", func(s *status) { s.Reason = "Tested" }), "the source's goes on")

	require.NoError(t, report("n1", func(s *status) {
		m := s.MigrationState
		m.StartTimestamp, m.Mode, m.TargetNodeAddress = new(metav1.Now()), vmi.MigrationPreCopy, "192.0.2.2"
	}), "the source's begins")
	now = s.latest(v).Status.MigrationState
	require.NotNil(t, now.StartTimestamp)
	require.Equal(t, vmi.MigrationPreCopy, now.Mode)
	require.Equal(t, "192.0.2.2", now.TargetNodeAddress)
	require.NoError(t, report("n1", func(s *status) {
		m := s.MigrationState
		m.Failed, m.Completed, m.EndTimestamp, m.FailureReason, m.AbortStatus = true, true, new(metav1.Now()), "it was aborted", vmi.MigrationAbortSucceeded
	}), "the source's has failed")
	now = s.latest(v).Status.MigrationState
	require.NotNil(t, now.EndTimestamp)
	require.Equal(t, "it was aborted", now.FailureReason)
	require.Equal(t, vmi.MigrationAbortSucceeded, now.AbortStatus)
	err := report("n2", reports)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "may not change a VMI of another node")

	s.move(v, second)
	arrives := func(s *status) {
		s.NodeName = "n2"
		s.MigrationState.Completed, s.MigrationState.EndTimestamp = true, new(metav1.Now())
	}
	require.NoError(t, report("n2", arrives), "the target's takes the VMI")
	require.Equal(t, "n2", s.latest(v).Status.NodeName)
	err = report("n1", func(s *status) { s.NodeName = "n1" })
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.NoError(t, report("n2", func(s *status) { s.Reason = "Tested" }), "which is its handler from then on")
}

// latest is the VMI as it is stored.
func (s space) latest(v *vmi.VirtualMachineInstance) *vmi.VirtualMachineInstance {
	s.t.Helper()
	v, err := s.vmis.Get(s.t.Context(), v.Name, metav1.GetOptions{})
	require.NoError(s.t, err)
	return v
}

func TestAHandlerTakesNoVMIThatHasNoNodeYet(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	unseen := s.create(guest("unseen"))
	claim := func(st *vmi.VirtualMachineInstanceStatus) { st.NodeName, st.Phase = "n1", vmi.PhaseScheduled }
	err := s.report(unseen, "n1", claim)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	s.control()
	waiting := s.awaitPhase("unseen", vmi.PhaseScheduling)
	err = s.report(waiting, "n1", claim)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

func TestAHandlerWritesNothingOfAVMIButItsStatus(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	v := s.start("vm")
	c, err := client.New(asHandler("n1"))
	require.NoError(t, err)
	vmis, ctx := c.VirtualMachineInstances(s.name), t.Context()
	patch := func(data string, sub ...string) error {
		_, err := vmis.Patch(ctx, "vm", types.MergePatchType, []byte(data), metav1.PatchOptions{}, sub...)
		return err
	}
	for name, try := range map[string]func() error{
		"the spec":         func() error { return patch(`{"spec":{"terminationGracePeriodSeconds":0}}`) },
		"a label":          func() error { return patch(`{"metadata":{"labels":{"a":"b"}}}`) },
		"the finalizer":    func() error { return patch(`{"metadata":{"finalizers":null}}`) },
		"the whole object": func() error { _, err := vmis.Update(ctx, v, metav1.UpdateOptions{}); return err },
		"a status of another node's VMI": func() error {
			other, err := client.New(asHandler("n2"))
			require.NoError(t, err)
			_, err = other.VirtualMachineInstances(s.name).UpdateStatus(ctx, v, metav1.UpdateOptions{})
			return err
		},
		"another VMI": func() error { _, err := vmis.Create(ctx, guest("new"), metav1.CreateOptions{}); return err },
		"its end":     func() error { return vmis.Delete(ctx, "vm", metav1.DeleteOptions{}) },
		"another one, applied": func() error {
			_, err := vmis.Patch(ctx, "new", types.ApplyPatchType, []byte(`{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstance","metadata":{"name":"new"},"spec":{"domain":{"devices":{}}}}`), metav1.PatchOptions{FieldManager: "x", Force: new(true)}, "status")
			return err
		},
	} {
		err := try()
		require.True(t, apierrors.IsForbidden(err) || apierrors.IsNotFound(err), "%s: %v", name, err)
	}
	require.NoError(t, patch(`{"metadata":{"labels":{"a":"b"},"finalizers":[]},"spec":{"terminationGracePeriodSeconds":0}}`, "status"))
	eventually(t, func() error {
		more, err := s.vmis.Get(ctx, "vm", metav1.GetOptions{})
		require.NoError(t, err)
		more.Labels, more.Finalizers, more.Spec.TerminationGracePeriodSeconds = map[string]string{"a": "b"}, nil, new(int64)
		_, err = vmis.UpdateStatus(ctx, more, metav1.UpdateOptions{})
		return err
	})
	after := s.awaitPhase("vm", vmi.PhaseRunning)
	require.Equal(t, v.Labels, after.Labels)
	require.Equal(t, v.Finalizers, after.Finalizers)
	require.Equal(t, v.Spec, after.Spec)
}

// The other tests impersonate the handler; this one has a token from the API
// server, as a pod gets it.
func TestTheTokenOfAHandlersPodNamesItsNode(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	v := s.start("vm")
	const ns, account = "kubevirt", "virt-handler"
	with := func(bound *authenticationv1.BoundObjectReference) error {
		r, err := world.kube.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: bound}}, metav1.CreateOptions{})
		require.NoError(t, err)
		cfg := rest.AnonymousClientConfig(world.config)
		cfg.BearerToken = r.Status.Token
		c, err := client.New(cfg)
		require.NoError(t, err)
		changed := v.DeepCopy()
		changed.Status.Reason = "Tested"
		_, err = client.WriteStatus(t.Context(), c.VirtualMachineInstances(s.name), v, changed)
		return err
	}
	on := func(node string) error {
		p, err := world.kube.CoreV1().Pods(ns).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "handler-"},
			Spec:       corev1.PodSpec{NodeName: node, ServiceAccountName: account, Containers: []corev1.Container{{Name: "c", Image: "example/c"}}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		t.Cleanup(func() {
			_ = world.kube.CoreV1().Pods(ns).Delete(context.Background(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		})
		return with(&authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.Name, UID: p.UID})
	}
	require.ErrorContains(t, with(nil), "does not say which node")
	require.ErrorContains(t, on("n2"), "may not change a VMI of another node")
	require.NoError(t, on("n1"))
}

func TestOnlyPodvisorWritesTheStatus(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	with := guest("vm")
	with.Status.Phase, with.Status.NodeName = vmi.PhaseRunning, "n1"
	v := s.create(with)
	require.Equal(t, vmi.VirtualMachineInstanceStatus{}, v.Status)
	changed := v.DeepCopy()
	changed.Status.Phase = vmi.PhaseRunning
	_, err := client.WriteStatus(t.Context(), s.vmis, v, changed)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "written by Podvisor only")
	_, err = s.vmis.UpdateStatus(t.Context(), changed, metav1.UpdateOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	v, err = s.vmis.Update(t.Context(), changed, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, vmi.VirtualMachineInstanceStatus{}, v.Status)

	m, set := s.owners()
	running := []byte(`{"status":{"printableStatus":"Running","created":true,"replicas":7}}`)
	_, err = world.vmis.VirtualMachines(s.name).Patch(t.Context(), m.Name, types.MergePatchType, running, metav1.PatchOptions{}, "status")
	require.ErrorContains(t, err, "written by Podvisor only")
	_, err = world.vmis.VirtualMachineInstanceReplicaSets(s.name).Patch(t.Context(), set.Name, types.MergePatchType, running, metav1.PatchOptions{}, "status")
	require.ErrorContains(t, err, "written by Podvisor only")
	c, err := client.New(asController())
	require.NoError(t, err)
	_, err = c.VirtualMachines(s.name).Patch(t.Context(), m.Name, types.MergePatchType, running, metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	c, err = client.New(asHandler("n1"))
	require.NoError(t, err)
	_, err = c.VirtualMachines(s.name).Patch(t.Context(), m.Name, types.MergePatchType, running, metav1.PatchOptions{}, "status")
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

func TestReservedLabelsAreNotTheUsers(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	reserved := []string{vmi.CreatedByLabel, "kubevirt.io/nodeName", "kubevirt.io/migrationTargetNodeName", "kubevirt.io/migrationJobUID", vmi.SchedulableLabel, "kubevirt.io/install-strategy"}
	for _, label := range reserved {
		v := guest("vm")
		v.Labels = map[string]string{label: "x"}
		_, err := s.vmis.Create(t.Context(), v, metav1.CreateOptions{})
		require.True(t, apierrors.IsInvalid(err), "%s: %v", label, err)
		require.ErrorContains(t, err, label)
	}
	both := guest("vm")
	both.Labels = map[string]string{reserved[0]: "x", reserved[1]: "y"}
	_, err := s.vmis.Create(t.Context(), both, metav1.CreateOptions{})
	require.ErrorContains(t, err, reserved[0]+", "+reserved[1], "all at once")

	own := guest("vm")
	own.Labels = map[string]string{"kubevirt.io/size": "small", "kubevirt.io/vm": "x", "app": "web"}
	v := s.create(own)
	label := func(vmis client.VirtualMachineInstances, data string) error {
		_, err := vmis.Patch(t.Context(), v.Name, types.MergePatchType, []byte(`{"metadata":{"labels":`+data+`}}`), metav1.PatchOptions{})
		return err
	}
	require.NoError(t, label(s.vmis, `{"kubevirt.io/size":"large"}`))
	require.True(t, apierrors.IsInvalid(label(s.vmis, `{"kubevirt.io/nodeName":"n1"}`)))
	cfg := rest.CopyConfig(world.config)
	cfg.Impersonate.UserName = "system:serviceaccount:kubevirt:virt-controller"
	controller, err := client.New(cfg)
	require.NoError(t, err)
	require.NoError(t, label(controller.VirtualMachineInstances(s.name), `{"kubevirt.io/nodeName":"n1"}`))
	require.NoError(t, label(s.vmis, `{"app":"api"}`), "a reserved label that does not change is accepted")
	require.True(t, apierrors.IsInvalid(label(s.vmis, `{"kubevirt.io/nodeName":"n2"}`)))
	require.True(t, apierrors.IsInvalid(label(s.vmis, `{"kubevirt.io/nodeName":null}`)))
}

// What identifies an object is in the caches of the API server and of virt-controller, and in
// the pod of a launcher.
func TestAttackWhatIdentifiesAnObjectIsSmall(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	labels := func(n int) map[string]string {
		out := map[string]string{}
		for i := range n {
			out[fmt.Sprint("label-", i)] = "x"
		}
		return out
	}
	finalizers := func(n int) []string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprint("example.com/", i))
		}
		return out
	}
	owners := func(n, size int) []metav1.OwnerReference {
		var out []metav1.OwnerReference
		for i := range n {
			out = append(out, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: strings.Repeat("a", size), UID: types.UID(fmt.Sprint(i))})
		}
		return out
	}
	for field, changes := range map[string][]func(*metav1.ObjectMeta){
		"labels":          {func(m *metav1.ObjectMeta) { m.Labels = labels(257) }},
		"finalizers":      {func(m *metav1.ObjectMeta) { m.Finalizers = finalizers(257) }},
		"ownerReferences": {func(m *metav1.ObjectMeta) { m.OwnerReferences = owners(1, 1024) }, func(m *metav1.ObjectMeta) { m.OwnerReferences = owners(257, 1) }},
	} {
		for _, change := range changes {
			v, m, set := guest("vm"), vmOf("vm", vmi.RunHalted), setOf(0)
			change(&v.ObjectMeta)
			change(&m.ObjectMeta)
			change(&set.ObjectMeta)
			_, ofVMI := s.vmis.Create(t.Context(), v, metav1.CreateOptions{})
			_, ofVM := s.vms().Create(t.Context(), m, metav1.CreateOptions{})
			_, ofSet := world.vmis.VirtualMachineInstanceReplicaSets(s.name).Create(t.Context(), set, metav1.CreateOptions{})
			for _, err := range []error{ofVMI, ofVM, ofSet} {
				require.True(t, apierrors.IsInvalid(err), "%s: %v", field, err)
				require.ErrorContains(t, err, "metadata."+field+": must have at most 256")
			}
		}
	}
	v := guest("vm")
	v.Labels, v.Finalizers = labels(256), finalizers(200)
	v = s.create(v)
	_, err := s.vmis.Patch(t.Context(), v.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"more":"x"}}}`), metav1.PatchOptions{})
	require.ErrorContains(t, err, "metadata.labels: must have at most 256 entries")
	_, err = s.vmis.Patch(t.Context(), v.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
}

func TestAHandlerMarksItsNodeOnly(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	node := s.name
	_, err := world.kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{"zone": "a"}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = world.kube.CoreV1().Nodes().Delete(t.Context(), node, metav1.DeleteOptions{}) })
	tests := []struct {
		name, as, patch, message string
	}{
		{"its own label and heartbeat", node, `{"metadata":{"labels":{"kubevirt.io/schedulable":"true"},"annotations":{"kubevirt.io/heartbeat":"x"}}}`, ""},
		{"the hash of its certificate", node, `{"metadata":{"annotations":{"podvisor.io/stream-certificate":"x"}}}`, ""},
		{"the hash of the certificate of another node", "other", `{"metadata":{"annotations":{"podvisor.io/stream-certificate":"x"}}}`, "may not change another node"},
		{"its address for migrations", node, `{"metadata":{"annotations":{"podvisor.io/migration-address":"192.0.2.7"}}}`, ""},
		{"that it has none", node, `{"metadata":{"annotations":{"podvisor.io/migration-address":null}}}`, ""},
		{"the address for migrations of another node", "other", `{"metadata":{"annotations":{"podvisor.io/migration-address":"192.0.2.7"}}}`, "may not change another node"},
		{"a label of a processor", node, `{"metadata":{"labels":{"cpu-model.node.kubevirt.io/Skylake":"true"}}}`, ""},
		{"that it gives whole CPUs to pods", node, `{"metadata":{"labels":{"kubevirt.io/cpumanager":"true","node-labeller.kubevirt.io/obsolete-host-model":"true","host-model-cpu.node.kubevirt.io/Haswell":"true"}}}`, ""},
		{"another node", "other", `{"metadata":{"labels":{"kubevirt.io/schedulable":"false"}}}`, "may not change another node"},
		{"a label of another owner", node, `{"metadata":{"labels":{"zone":"b"}}}`, "only those labels of a node"},
		{"the removal of a label of another owner", node, `{"metadata":{"labels":{"zone":null}}}`, "only those labels of a node"},
		{"a label that only looks like ours", node, `{"metadata":{"labels":{"kubevirt.io.example.com/x":"b"}}}`, "only those labels of a node"},
		{"a label of ours that others write", node, `{"metadata":{"labels":{"kubevirt.io/other":"b"}}}`, "only those labels of a node"},
		{"a label that only begins as one of a processor", node, `{"metadata":{"labels":{"cpu-model.node.kubevirt.io.example.com/x":"b"}}}`, "only those labels of a node"},
		{"the annotation that keeps its labels", node, `{"metadata":{"annotations":{"node-labeller.kubevirt.io/skip-node":"true"}}}`, "no annotation of a node but"},
		{"the spec", node, `{"spec":{"unschedulable":true}}`, "may not change the spec"},
		{"an annotation of another owner", node, `{"metadata":{"annotations":{"csi.volume.kubernetes.io/nodeid":"x"}}}`, "no annotation of a node but"},
		{"an owner", node, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"x","uid":"x"}]}}`, "owners or the finalizers"},
		{"a finalizer", node, `{"metadata":{"finalizers":["kubevirt.io/x"]}}`, "owners or the finalizers"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			kube, err := kubernetes.NewForConfig(asHandler(tt.as))
			require.NoError(t, err)
			_, err = kube.CoreV1().Nodes().Patch(t.Context(), node, types.StrategicMergePatchType, []byte(tt.patch), metav1.PatchOptions{})
			if tt.message == "" {
				require.NoError(t, err)
				return
			}
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			require.ErrorContains(t, err, tt.message)
		})
	}
}

func TestACreatedVMIHasTheFinalizer(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	require.Equal(t, []string{vmi.Finalizer}, s.create(guest("plain")).Finalizers)
	with := guest("with")
	with.Finalizers = []string{"example.com/mine"}
	require.Equal(t, []string{"example.com/mine", vmi.Finalizer}, s.create(with).Finalizers)
	has := guest("has")
	has.Finalizers = []string{vmi.Finalizer}
	require.Equal(t, []string{vmi.Finalizer}, s.create(has).Finalizers)
}

// A node that says of another that it has a processor, or that it lacks one, would have
// VMIs scheduled where it likes.
func TestAttackTheProcessorsOfAnotherNode(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	_, err := world.kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: s.name, Labels: map[string]string{"cpu-model.node.kubevirt.io/Haswell": "true"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = world.kube.CoreV1().Nodes().Delete(context.Background(), s.name, metav1.DeleteOptions{}) })
	kube, err := kubernetes.NewForConfig(asHandler("other-" + s.name))
	require.NoError(t, err)
	for _, patch := range []string{
		`{"metadata":{"labels":{"cpu-model.node.kubevirt.io/Haswell":null}}}`, `{"metadata":{"labels":{"cpu-model.node.kubevirt.io/Penryn":"true"}}}`,
		`{"metadata":{"labels":{"cpu-feature.node.kubevirt.io/vmx":"true"}}}`, `{"metadata":{"labels":{"node-labeller.kubevirt.io/obsolete-host-model":"true"}}}`,
		`{"metadata":{"labels":{"kubevirt.io/cpumanager":"true"}}}`,
	} {
		for _, sub := range [][]string{nil, {"status"}} {
			_, err := kube.CoreV1().Nodes().Patch(t.Context(), s.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, sub...)
			require.True(t, apierrors.IsForbidden(err), "%s %v: %v", patch, sub, err)
		}
	}
}
