package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// counts writes to the console a digest of the endorsement key of the guest's TPM, and then each
// second the value of a counter in it, after it has incremented it: TPM2_NV_DefineSpace,
// TPM2_NV_Increment and TPM2_NV_Read of 0x01500001.
const counts = ofFirmware + `
ask() { printf "$1" >&3; dd bs=4096 count=1 <&3 2>/dev/null > /tmp/answer; }
owner='\000\000\000\011\100\000\000\011\000\000\000\000\000'
index='\001\120\000\001'
ask '\200\002\000\000\000\055\000\000\001\052\100\000\000\001'"$owner"'\000\000\000\016'"$index"'\000\013\002\002\000\022\000\000\000\010'
while :; do
  ask '\200\002\000\000\000\037\000\000\001\064\100\000\000\001'"$index$owner"
  ask '\200\002\000\000\000\043\000\000\001\116\100\000\000\001'"$index$owner"'\000\010\000\000'
  echo "the TPM counts $(od -An -tx1 -j16 -N8 /tmp/answer | tr -d ' \n')" > /dev/console
  sleep 1
done &
`

var (
	keyed   = regexp.MustCompile(`TPM answered 00000000 with a key ([0-9a-f]{32})`)
	counted = regexp.MustCompile(`the TPM counts ([0-9a-f]{16})`)
)

// stateful is a VM that always runs, with persistent firmware variables and TPM, whose guest runs
// the script.
func (s space) stateful(name, script string) {
	s.t.Helper()
	s.vmOf(guest(name, script, vmitest.WithMemory("192Mi"), vmitest.WithGracePeriod(5), func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Firmware = &vmi.Firmware{Bootloader: &vmi.Bootloader{EFI: &vmi.EFI{SecureBoot: new(false), Persistent: new(true)}}}
		v.Spec.Domain.Devices.TPM = &vmi.TPM{Persistent: new(true)}
	}))
}

// counters are the values that the guest's TPM has counted in the pod, of which there is one.
func (s space) counters(v *vmi.VirtualMachineInstance) []int64 {
	s.t.Helper()
	var out []int64
	for _, m := range s.awaitMatches(v, counted) {
		n, err := strconv.ParseInt(m[1], 16, 64)
		require.NoError(s.t, err)
		out = append(out, n)
	}
	require.True(s.t, slices.IsSorted(out), "%v", out)
	return out
}

// key is the digest of the endorsement key that the guest found when it was started.
func (s space) key(v *vmi.VirtualMachineInstance) string {
	s.t.Helper()
	return s.awaitMatches(v, keyed)[0][1]
}

// awaitOneState waits until the VM has one claim for its state that stays, and returns it. One that
// is deleted goes with the pod that the guest has left.
func (s space) awaitOneState(name string) (found corev1.PersistentVolumeClaim) {
	s.t.Helper()
	eventually(s.t, long, func() error {
		all, err := world.kube.CoreV1().PersistentVolumeClaims(s.name).List(s.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		var names []string
		for _, c := range all.Items {
			if c.DeletionTimestamp != nil {
				continue
			}
			names = append(names, fmt.Sprint(c.Name, c.Labels))
			found = c
		}
		if len(names) != 1 || found.Labels[vmi.StateLabel] != name || found.Labels[vmi.MigrationNameLabel] != "" {
			return fmt.Errorf("claims: %v", names)
		}
		return nil
	})
	return found
}

func TestAGuestThatMovesKeepsItsTPMAndItsFirmware(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.stateful("moves", counts)
	s.awaitPrinted("moves", vmi.StatusRunning)
	v := s.get("moves")
	key, last := s.key(v), slices.Max(s.counters(v))
	c := v.Status.Condition(vmi.ConditionLiveMigratable)
	require.NotNil(t, c)
	require.Equal(t, corev1.ConditionTrue, c.Status, c.Message)
	for range max(2, *moves/2) {
		from := v.Status.NodeName
		v = s.moved(s.moves("moves"), from)
		claim := s.awaitOneState("moves")
		require.Equal(t, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, claim.Spec.AccessModes)
		require.Equal(t, v.Status.MigrationState.TargetPersistentStatePVCName, claim.Name)
		require.NotEqual(t, v.Status.MigrationState.SourcePersistentStatePVCName, claim.Name)
		s.awaitOnePod(v)
		now := s.counters(v)
		require.Greater(t, slices.Min(now), last, "it goes on")
		last = slices.Max(now)
	}
	s.run("moves", vmi.RunHalted)
	s.awaitPrinted("moves", vmi.StatusStopped)
	s.awaitGone(v)
	s.run("moves", vmi.RunAlways)
	s.awaitPrinted("moves", vmi.StatusRunning)
	v = s.get("moves")
	require.Contains(t, s.pod(v).Spec.Containers[0].Args, "--require-state")
	require.Equal(t, key, s.key(v))
	require.Contains(t, s.console(v), "started by UEFI")
	require.Greater(t, slices.Min(s.counters(v)), last, "it has counted since")
	s.awaitOneState("moves")
}

func TestAVMWhoseLaunchersAreKilledWhileItMovesStartsWithItsState(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.stateful("killed", counts)
	s.awaitPrinted("killed", vmi.StatusRunning)
	v := s.get("killed")
	key, last := s.key(v), slices.Max(s.counters(v))
	for _, wait := range []time.Duration{0, 400 * time.Millisecond, 1200 * time.Millisecond} {
		uid := v.UID
		m := s.migrate("killed")
		reached := func(is func(*vmi.MigrationState) bool) {
			eventually(t, long, func() error {
				if v = s.get("killed"); v.Status.MigrationState == nil || v.Status.MigrationState.MigrationUID != m.UID || !is(v.Status.MigrationState) {
					return fmt.Errorf("%+v", v.Status.MigrationState)
				}
				return nil
			})
		}
		reached(func(*vmi.MigrationState) bool { return true })
		reached(func(s *vmi.MigrationState) bool { return s.StartTimestamp != nil })
		time.Sleep(wait)
		state, killed := v.Status.MigrationState, 0
		for pod, p := range launchers() {
			if _, is := v.Status.ActivePods[pod]; is && syscall.Kill(p.pid, syscall.SIGKILL) == nil {
				killed++
			}
		}
		require.Positive(t, killed, "launchers of %v", v.Status.ActivePods)
		eventually(t, long, func() error {
			found, err := world.vmis.VirtualMachineInstances(s.name).Get(t.Context(), "killed", metav1.GetOptions{})
			if err == nil && (found.UID == uid || found.Status.Phase != vmi.PhaseRunning) {
				err = fmt.Errorf("%s is %s: %+v", found.UID, found.Status.Phase, found.Status.MigrationState)
			}
			v = found
			return err
		})
		require.Equal(t, key, s.key(v))
		now := s.counters(v)
		require.Greater(t, slices.Min(now), last)
		last = slices.Max(now)
		t.Logf("%d launchers killed %s after the start: the state is in %s, it was in %s and %s", killed, wait, s.awaitOneState("killed").Name,
			state.SourcePersistentStatePVCName, state.TargetPersistentStatePVCName)
	}
}
