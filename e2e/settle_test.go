package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/migrationpolicy"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// virt-controller waits 40 s for a handler that is down. One that waits for a migration is not.
func TestAHandlerThatIsReplacedWhileAGuestMovesKeepsItsVMIsReady(t *testing.T) {
	s := newSpace(t)
	atOnce := s.slowly(func(*migrationpolicy.MigrationPolicySpec) {})
	s.create(guest("busy", cloudConfig("runcmd: ['while :; do dd if=/dev/urandom of=/tmp/busy bs=1M count=4 conv=notrunc 2>/dev/null; sleep 1; done &']"), vmitest.WithGracePeriod(3)))
	v := s.awaitSteady("busy")
	stays := func() {
		t.Helper()
		now := s.get("busy")
		require.Equal(t, v.Status.Condition(vmi.ConditionReady), now.Status.Condition(vmi.ConditionReady))
		require.Equal(t, v.Status.NodeName, now.Status.NodeName)
	}
	m := s.awaitMigration(s.migrate("busy"), vmi.MigrationPhaseRunning)
	handler := s.handlerOf(v.Status.NodeName)
	s.kubectl("-n", install.Namespace, "delete", "pod", handler, "--wait=false")
	all := world.vmis.VirtualMachineInstanceMigrations(s.name)
	for end := time.Now().Add(55 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
		stays()
		m, err := all.Get(t.Context(), m.Name, metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, vmi.MigrationPhaseRunning, m.Status.Phase)
		require.Equal(t, handler, s.handlerOf(v.Status.NodeName), "it waits for the migration")
	}
	require.NoError(t, all.Delete(t.Context(), m.Name, metav1.DeleteOptions{}))
	s.kubectl("-n", install.Namespace, "wait", "--for=delete", "pod/"+handler, "--timeout=300s")
	s.kubectl("-n", install.Namespace, "rollout", "status", "daemonset/virt-handler", "--timeout=300s")
	stays()
	atOnce()
	s.moved(s.moves("busy"), v.Status.NodeName)
}
