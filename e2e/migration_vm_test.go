package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/migrationpolicy"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// slowly makes a policy by which a migration of the namespace sends 1 MiB in a second, until the
// function is called.
func (s space) slowly(change func(*migrationpolicy.MigrationPolicySpec)) (end func()) {
	s.t.Helper()
	policies := client.Of(world.vmis, migrationpolicy.MigrationPolicies, "")
	p := &migrationpolicy.MigrationPolicy{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Spec: migrationpolicy.MigrationPolicySpec{
		Selectors:             &migrationpolicy.Selectors{NamespaceSelector: map[string]string{corev1.LabelMetadataName: s.name}},
		BandwidthPerMigration: new(resource.MustParse("1Mi")),
	}}
	change(&p.Spec)
	_, err := policies.Create(s.t.Context(), p, metav1.CreateOptions{})
	require.NoError(s.t, err)
	end = func() {
		if err := policies.Delete(context.WithoutCancel(s.t.Context()), p.Name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			require.NoError(s.t, err)
		}
	}
	s.t.Cleanup(end)
	return end
}

// awaitNext waits until the VMI is one that was made after this one, and runs.
func (s space) awaitNext(before *vmi.VirtualMachineInstance) *vmi.VirtualMachineInstance {
	s.t.Helper()
	var v *vmi.VirtualMachineInstance
	eventually(s.t, long, func() (err error) {
		v, err = world.vmis.VirtualMachineInstances(s.name).Get(s.t.Context(), before.Name, metav1.GetOptions{})
		if err == nil && (v.UID == before.UID || v.Status.Phase != vmi.PhaseRunning) {
			err = fmt.Errorf("VMI %s is %s, of UID %s", v.Name, v.Status.Phase, v.UID)
		}
		return err
	})
	return v
}

// TestWhatAUserAsksOfAVMThatMovesIsDone is about the rows of the table in docs/migration.md of
// a guest whose memory is being sent, and of one whose target is not ready.
func TestWhatAUserAsksOfAVMThatMovesIsDone(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.slowly(func(*migrationpolicy.MigrationPolicySpec) {})
	vms, vmis := world.vmis.VirtualMachines(s.name), world.vmis.VirtualMachineInstances(s.name)
	s.vmOf(guest("desk", cloudConfig("hostname: desk"), vmitest.WithGracePeriod(5)))
	s.awaitPrinted("desk", vmi.StatusRunning)
	v := s.awaitSteady("desk")

	sent := s.awaitMigration(s.migrate("desk"), vmi.MigrationPhaseRunning)
	require.NoError(t, vmis.Pause(t.Context(), "desk", vmi.PauseOptions{}))
	eventually(t, soon, func() error {
		if s.get("desk").Status.Condition(vmi.ConditionPaused) == nil {
			return errors.New("the VMI is not paused")
		}
		return nil
	})
	require.ErrorContains(t, vmis.Unpause(t.Context(), "desk", vmi.UnpauseOptions{}), "the guest moves to another node: try again in a moment")
	require.ErrorContains(t, vmis.Reset(t.Context(), "desk"), "the guest moves to another node: try again in a moment")
	vm := s.getVM("desk")
	vm.Spec.Template.Spec.Domain.Memory = &vmi.Memory{Guest: new(resource.MustParse("160Mi"))}
	_, err := vms.Update(t.Context(), vm, metav1.UpdateOptions{})
	require.NoError(t, err)
	s.awaitVM("desk", "RestartRequired", func(vm *vmi.VirtualMachine) bool { return vm.Status.Condition(vmi.ConditionRestartRequired) != nil })
	require.False(t, s.get("desk").Status.MigrationState.Completed, "it is sent still")

	require.NoError(t, vms.Restart(t.Context(), "desk", vmi.RestartOptions{}))
	next := s.awaitNext(v)
	require.Equal(t, "160Mi", next.Spec.Domain.Memory.Guest.String())
	eventually(t, soon, func() error {
		now, err := world.vmis.VirtualMachineInstanceMigrations(s.name).Get(t.Context(), sent.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		case now.Status.Phase != vmi.MigrationPhaseFailed:
			return errors.New("the migration has not failed")
		}
		return nil
	})
}
