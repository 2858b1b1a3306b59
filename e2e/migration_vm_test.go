package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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

// ending is when a guest that moves is to end, and by what.
type ending struct {
	// phase is that of the migration. Empty: the source has sent everything, and the target
	// has not said yet whether the guest runs there.
	phase vmi.MigrationPhase
	// stopped says that its VM is stopped. Otherwise the VMI is deleted.
	stopped bool
}

// TestAGuestThatMovesPowersOffOnceWhenItIsToEnd is about the row of the table in
// docs/migration.md of a VM that is stopped, and of a VMI that is deleted. make test-migrations
// tries all of them.
func TestAGuestThatMovesPowersOffOnceWhenItIsToEnd(t *testing.T) {
	t.Parallel()
	all := []ending{
		{vmi.MigrationPhaseScheduling, false}, {vmi.MigrationPhaseScheduling, true}, {vmi.MigrationPhaseTargetReady, false}, {vmi.MigrationPhaseTargetReady, true},
		{vmi.MigrationPhaseRunning, false}, {vmi.MigrationPhaseRunning, true}, {"", false}, {"", true},
	}
	if *moves < len(all) {
		all = all[:1]
	}
	for _, e := range all {
		t.Run(fmt.Sprintf("%s, stopped: %t", cmp.Or(e.phase, "sent"), e.stopped), func(t *testing.T) {
			s := newSpace(t)
			if e.phase != "" {
				s.slowly(func(*migrationpolicy.MigrationPolicySpec) {})
			}
			in := guest("ends", cloudConfig("hostname: ends"), vmitest.WithGracePeriod(20))
			if e.stopped {
				s.vmOf(in)
			} else {
				s.create(in)
			}
			s.awaitPhase("ends", vmi.PhaseRunning)
			v := s.awaitSteady("ends")
			from := s.keepConsole(v)
			m := s.migrate("ends")
			to := func() string { return "" }
			var shown string // at the source
			if e.phase != "" {
				s.awaitMigration(m, e.phase)
			} else {
				s.awaitMigration(m, vmi.MigrationPhaseScheduled)
				target := slices.DeleteFunc(s.pods(v), func(p corev1.Pod) bool { return p.Spec.NodeName == v.Status.NodeName })
				require.Len(t, target, 1)
				to = s.keepConsoleIn(target[0])
				for deadline := time.Now().Add(long); !strings.Contains(shown, "everything is sent"); time.Sleep(time.Millisecond) {
					require.True(t, time.Now().Before(deadline), shown)
					shown += from()
				}
			}
			if e.stopped {
				s.run("ends", vmi.RunHalted)
			} else {
				s.delete("ends")
			}
			s.awaitGone(v)

			there := strings.Count(to(), "powering off")
			here := strings.Count(shown+from(), "powering off")
			require.Equal(t, 1, here+there, "%d times at the source and %d times at the target", here, there)
			now, err := world.vmis.VirtualMachineInstanceMigrations(s.name).Get(t.Context(), m.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return
			}
			require.NoError(t, err)
			if e.phase == "" {
				t.Logf("the guest powered off at the target: %t, and the migration is %s", there == 1, now.Status.Phase)
				require.True(t, now.Status.Phase.Final())
			} else {
				require.Equal(t, 1, here, "it powers off where it was")
				require.Equal(t, vmi.MigrationPhaseFailed, now.Status.Phase)
			}
		})
	}
}
