package apiserver

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/scheduler/admission"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/migrationpolicy"
)

// migrationOf is a migration of the VMI that is not stored.
func migrationOf(name, instance string) *vmi.VirtualMachineInstanceMigration {
	m := &vmi.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Spec.VMIName = instance
	return m
}

// as is a client of the user.
func as(t *testing.T, user string) *client.Client {
	t.Helper()
	cfg := rest.CopyConfig(world.config)
	cfg.Impersonate.UserName = user
	c, err := client.New(cfg)
	require.NoError(t, err)
	return c
}

func TestAMigrationIsStoredWithWhatPodvisorSaysOfIt(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	migrations := world.vmis.VirtualMachineInstanceMigrations(s.name)
	asked := migrationOf("move", "web")
	asked.Spec.AddedNodeSelector = map[string]string{"zone": "b"}
	m, err := migrations.Create(t.Context(), asked, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, "web", m.Spec.VMIName)
	require.Equal(t, map[string]string{"zone": "b"}, m.Spec.AddedNodeSelector)
	require.Equal(t, []string{vmi.MigrationFinalizer}, m.Finalizers, "the policy adds it while no webhook answers")

	now := metav1.NewTime(time.Now().Truncate(time.Second))
	status := vmi.VirtualMachineInstanceMigrationStatus{MigrationState: &vmi.MigrationState{
		StartTimestamp: &now, EndTimestamp: &now, Completed: true, Failed: true, FailureReason: "it was aborted",
		AbortRequested: true, AbortStatus: vmi.MigrationAbortSucceeded, MigrationUID: m.UID, Mode: vmi.MigrationPreCopy,
		MigrationPolicyName: new("slow"), MigrationConfiguration: config.Config{}.Migration(nil),
		SourceNode: "n1", SourcePod: "one", TargetNode: "n2", TargetPod: "two", TargetNodeAddress: "192.0.2.2",
		TargetDirectMigrationNodePorts: map[string]int{"8186": 0}, TargetNodeDomainDetected: true, TargetNodeDomainReadyTimestamp: &now,
		TargetCPUSet: []int{1, 2}, TargetNodeTopology: "{}",
	}}
	status.SetPhase(vmi.MigrationPhasePending, now)
	status.SetPhase(vmi.MigrationPhaseFailed, now)
	status.SetCondition(vmi.Condition{Type: vmi.ConditionAbortRequested, Status: corev1.ConditionTrue, Reason: "Deleted", Message: "it was deleted", LastProbeTime: now}, now)
	written := m.DeepCopy()
	written.Status = status
	_, err = client.WriteStatus(t.Context(), migrations, m, written)
	require.True(t, apierrors.IsForbidden(err), "the status is not an administrator's: %v", err)
	c, err := client.New(asController())
	require.NoError(t, err)
	_, err = client.WriteStatus(t.Context(), c.VirtualMachineInstanceMigrations(s.name), m, written)
	require.NoError(t, err)
	m, err = migrations.Get(t.Context(), "move", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, vmi.MigrationPhaseFailed, m.Status.Phase)
	require.Len(t, m.Status.PhaseTransitionTimestamps, 2)
	require.Equal(t, "it was deleted", m.Status.Condition(vmi.ConditionAbortRequested).Message)
	require.Zero(t, m.Status.MigrationState.MigrationConfiguration.BandwidthPerMigration.Cmp(resource.MustParse("0")))
	m.Status.MigrationState.MigrationConfiguration.BandwidthPerMigration = status.MigrationState.MigrationConfiguration.BandwidthPerMigration
	require.Equal(t, status.MigrationState, m.Status.MigrationState)
}

func TestAVMISaysHowItMovesAsItWasWritten(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	stop := s.control()
	v := s.start("vm")
	target := s.target(v)
	stop() // it knows no such migration
	s.move(v, target, func(s *vmi.VirtualMachineInstanceStatus) {
		s.MigrationState.AbortRequested, s.MigrationState.MigrationPolicyName = true, new("slow")
		s.MigrationState.MigrationConfiguration = &vmi.MigrationConfiguration{CompletionTimeoutPerGiB: new(int64(7))}
	})
	m := s.latest(v).Status.MigrationState
	require.True(t, m.AbortRequested)
	require.Equal(t, "slow", *m.MigrationPolicyName)
	require.Equal(t, int64(7), *m.MigrationConfiguration.CompletionTimeoutPerGiB)
}

func TestTheRoleMigrateAloneMovesVMIs(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	for _, role := range []string{"view", "edit", "admin", "migrate"} {
		_, err := world.kube.RbacV1().RoleBindings(s.name).Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kubevirt.io:" + role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: s.name + "-" + role}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	plural := vmi.VirtualMachineInstanceMigrations.Plural
	eventually(t, func() error {
		_, err := as(t, s.name+"-migrate").VirtualMachineInstanceMigrations(s.name).List(t.Context(), metav1.ListOptions{})
		return err
	})
	for _, role := range []string{"view", "edit"} {
		require.True(t, s.may(s.name+"-"+role, "list", plural, ""), role)
		require.False(t, s.may(s.name+"-"+role, "create", plural, ""), role)
		require.False(t, s.may(s.name+"-"+role, "delete", plural, ""), role)
	}
	for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
		require.True(t, s.may(s.name+"-migrate", verb, plural, ""), verb)
		require.False(t, s.may(s.name+"-migrate", verb, plural, "status"), verb)
		require.False(t, s.may("system:serviceaccount:kubevirt:virt-handler", verb, plural, ""), verb)
	}
	migrations := as(t, s.name+"-migrate").VirtualMachineInstanceMigrations(s.name)
	first := migrationOf("move", "web")
	first.Spec.Priority = new(vmi.MigrationSystemCritical)
	_, err := migrations.Create(t.Context(), first, metav1.CreateOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "spec.priority may be set by Podvisor only")
	first.Spec.Priority = nil
	made, err := migrations.Create(t.Context(), first, metav1.CreateOptions{})
	require.NoError(t, err)
	made.Spec.VMIName = "db"
	_, err = migrations.Update(t.Context(), made, metav1.UpdateOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "the spec of a VirtualMachineInstanceMigration cannot be changed")
	c, err := client.New(asController())
	require.NoError(t, err)
	first.Name, first.Spec.Priority = vmi.EvacuationNamePrefix+"abc", new(vmi.MigrationSystemCritical)
	own, err := c.VirtualMachineInstanceMigrations(s.name).Create(t.Context(), first, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, vmi.MigrationSystemCritical, *own.Spec.Priority)
	first.Name = "another"
	_, err = c.VirtualMachineInstanceMigrations(s.name).Create(t.Context(), first, metav1.CreateOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

func TestAMigrationOfAVMIThatCannotMoveIsRefusedByName(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, func(w *webhooks) {
		c, err := client.New(asController())
		require.NoError(t, err)
		mux := http.NewServeMux()
		for at, h := range (admission.Webhooks{}).Handlers() {
			mux.Handle(at, h)
		}
		mux.Handle(admission.MigrationPath, admission.Migrations{Client: c})
		w.answer(mux)
	})
	w.serve()
	migrations := world.vmis.VirtualMachineInstanceMigrations(w.name)
	const by = `admission webhook "migration-create-validator.kubevirt.io" denied the request: `
	_, err := migrations.Create(t.Context(), migrationOf("move", "web"), metav1.CreateOptions{})
	require.ErrorContains(t, err, by+`the VMI "web" does not exist`)
	_, err = migrations.Create(t.Context(), migrationOf("move", ""), metav1.CreateOptions{})
	require.ErrorContains(t, err, "spec.vmiName")
	w.create(guest("web"))
	m, err := migrations.Create(t.Context(), migrationOf("move", "web"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{vmi.MigrationSelectorLabel: "web"}, m.Labels)
	require.Equal(t, []string{vmi.MigrationFinalizer}, m.Finalizers)
	_, err = migrations.Create(t.Context(), migrationOf("again", "web"), metav1.CreateOptions{})
	require.ErrorContains(t, err, by+"in-flight migration detected.")
}

func TestAMigrationPolicyIsStored(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	policies := client.Of(world.vmis, migrationpolicy.MigrationPolicies, "")
	p := &migrationpolicy.MigrationPolicy{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	p.Spec = migrationpolicy.MigrationPolicySpec{
		Selectors:         &migrationpolicy.Selectors{NamespaceSelector: map[string]string{"team": "a"}, VirtualMachineInstanceSelector: map[string]string{"app": "db"}},
		AllowAutoConverge: new(true), AllowPostCopy: new(false), AllowWorkloadDisruption: new(true), CompletionTimeoutPerGiB: new(int64(3)),
		BandwidthPerMigration: new(resource.MustParse("64Mi")),
	}
	_, err := policies.Create(t.Context(), p, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = policies.Delete(context.Background(), s.name, metav1.DeleteOptions{}) })
	stored, err := policies.Get(t.Context(), s.name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Zero(t, stored.Spec.BandwidthPerMigration.Cmp(*p.Spec.BandwidthPerMigration))
	stored.Spec.BandwidthPerMigration = p.Spec.BandwidthPerMigration
	require.Equal(t, p.Spec, stored.Spec)
}
