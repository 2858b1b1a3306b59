package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// movingAddress is the address of the mover of that number on the secondary bridge.
func movingAddress(number int) string { return fmt.Sprintf("192.168.82.%d", number) }

// keepsJournal writes records to the disk with the serial number journal, past all caches,
// and reads each one back before it writes the next. The page state has the boot ID, the
// number of the last record and the uptime, and the page faults what was not as written.
const keepsJournal = `#!/bin/sh
mkdir -p /tmp /www
boot=$(cat /proc/sys/kernel/random/boot_id)
for b in /sys/block/*; do [ "$(cat $b/serial 2>/dev/null)" != journal ] || disk=/dev/${b##*/}; done
: > /www/faults
fault() { echo "$*" >> /www/faults; echo "journal: $*" > /dev/console; }
n=0
while :; do
  if [ $n -gt 0 ]; then
    dd if=$disk of=/tmp/found bs=4096 skip=$((n % 64)) count=1 iflag=direct 2>/dev/null || fault "record $n cannot be read"
    cmp -s /tmp/found /tmp/record || fault "record $n is not what was written"
  fi
  n=$((n + 1))
  text="$n $boot"
  printf '%-4095s\n' "$text $(echo $text | cksum)" > /tmp/record
  dd if=/tmp/record of=$disk bs=4096 seek=$((n % 64)) count=1 oflag=direct conv=notrunc 2>/dev/null || fault "record $n cannot be written"
  read up idle < /proc/uptime
  echo "$boot $n $up" > /www/.state
  mv /www/.state /www/state
done &
`

// mover is a guest that keeps a journal, with an interface of the model on the bridge lan,
// where all tests are: each guest has a number of its own.
func mover(name string, number int, model vmi.InterfaceModel, options ...vmitest.Option) *vmi.VirtualMachineInstance {
	v := guest(name, keepsJournal, append([]vmitest.Option{
		vmitest.WithEmptyDisk("journal", "16Mi"), vmitest.WithMultus("second", "lan"), vmitest.WithGracePeriod(3),
	}, options...)...)
	for n := range v.Spec.Domain.Devices.Disks {
		if d := &v.Spec.Domain.Devices.Disks[n]; d.Name == "journal" {
			d.Serial, d.Disk = "journal", &vmi.DiskTarget{Bus: vmi.DiskBusVirtio}
		}
	}
	v.Spec.Domain.Devices.Interfaces[1].MacAddress, v.Spec.Domain.Devices.Interfaces[1].Model = fmt.Sprintf("02:00:00:00:82:%02x", number), model
	withNetworkData(v, "version: 2\nethernets:\n  eth1: {addresses: ["+movingAddress(number)+"/24]}\n")
	return v
}

// migrate creates a migration of the VMI.
func (s space) migrate(name string) *vmi.VirtualMachineInstanceMigration {
	s.t.Helper()
	m, err := world.vmis.VirtualMachineInstanceMigrations(s.name).Create(s.t.Context(), &vmi.VirtualMachineInstanceMigration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}, Spec: vmi.VirtualMachineInstanceMigrationSpec{VMIName: name},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	return m
}

// awaitMigration waits until the migration is in the phase or, for one that is not the end, past it.
func (s space) awaitMigration(m *vmi.VirtualMachineInstanceMigration, want vmi.MigrationPhase) *vmi.VirtualMachineInstanceMigration {
	s.t.Helper()
	eventually(s.t, long, func() error {
		now, err := world.vmis.VirtualMachineInstanceMigrations(s.name).Get(s.t.Context(), m.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		m = now
		p := m.Status.Phase
		reached := slices.ContainsFunc(m.Status.PhaseTransitionTimestamps, func(t vmi.MigrationPhaseTimestamp) bool { return t.Phase == want })
		if p == want || reached && want != vmi.MigrationPhaseSucceeded && want != vmi.MigrationPhaseFailed {
			return nil
		}
		if p == vmi.MigrationPhaseSucceeded || p == vmi.MigrationPhaseFailed {
			s.t.Fatalf("migration %s is %s and not %s: %+v", m.Name, p, want, m.Status)
		}
		return fmt.Errorf("migration %s is %q and not %s: %+v", m.Name, p, want, m.Status)
	})
	return m
}

// moved requires of the VMI, in one read, what its status says after the migration.
func (s space) moved(m *vmi.VirtualMachineInstanceMigration, from string) *vmi.VirtualMachineInstance {
	s.t.Helper()
	v := s.get(m.Spec.VMIName)
	require.NotNil(s.t, v.Status.MigrationState)
	now := *v.Status.MigrationState
	require.Equal(s.t, m.UID, now.MigrationUID)
	require.True(s.t, now.Completed, "%+v", now)
	require.False(s.t, now.Failed, "%+v", now)
	require.NotNil(s.t, now.StartTimestamp)
	require.NotNil(s.t, now.EndTimestamp)
	require.NotNil(s.t, now.TargetNodeDomainReadyTimestamp)
	require.NotEmpty(s.t, now.TargetNodeAddress)
	require.Equal(s.t, from, now.SourceNode)
	require.Equal(s.t, v.Status.NodeName, now.TargetNode)
	require.NotEqual(s.t, from, now.TargetNode)
	require.Empty(s.t, v.Status.EvacuationNodeName)
	require.Equal(s.t, vmi.PhaseRunning, v.Status.Phase)

	stored := m.Status.MigrationState
	require.NotNil(s.t, stored, "the copy is written with the phase")
	require.Equal(s.t, now.MigrationUID, stored.MigrationUID)
	require.Equal(s.t, now.StartTimestamp, stored.StartTimestamp)
	require.Equal(s.t, now.EndTimestamp, stored.EndTimestamp)
	require.Equal(s.t, now.Completed, stored.Completed)
	require.Equal(s.t, now.Failed, stored.Failed)
	eventually(s.t, soon, func() error {
		if v = s.get(v.Name); v.Labels[vmi.NodeNameLabel] != v.Status.NodeName || v.Labels[vmi.MigrationTargetNodeLabel] != "" {
			return fmt.Errorf("labels of %s: %v", v.Name, v.Labels)
		}
		return nil
	})
	return v
}

// guestState is what the page state of a guest that keeps a journal says.
type guestState struct {
	boot    string
	records int
	// offset is the host's clock without the guest's uptime: it grows while the guest stands still.
	offset time.Duration
}

// state reads the page for a while, for the smallest offset: the page is a little older than its answer.
func (v visitor) state(url string) guestState {
	v.t.Helper()
	var best guestState
	for n := range 10 {
		page := v.awaitPage(url + "/state")
		answered := time.Duration(time.Now().UnixNano())
		var g guestState
		var up float64
		_, err := fmt.Sscan(page, &g.boot, &g.records, &up)
		require.NoError(v.t, err, page)
		g.offset = answered - time.Duration(up*float64(time.Second))
		if n > 0 {
			g.offset = min(g.offset, best.offset)
		}
		best = g
	}
	return best
}

// goesOn requires that the guest of before is the one of now, and that its journal is whole.
func (v visitor) goesOn(url string, before guestState) guestState {
	v.t.Helper()
	var now guestState
	eventually(v.t, soon, func() error {
		if now = v.state(url); now.boot == before.boot && now.records <= before.records {
			return fmt.Errorf("the journal stands still at %d records", now.records)
		}
		return nil
	})
	require.Equal(v.t, before.boot, now.boot, "the guest has not booted again")
	require.Empty(v.t, strings.TrimSpace(v.awaitPage(url+"/faults")))
	return now
}

// readyPods is how many ready pods the Service leads to.
func (s space) readyPods(service string) (n int) {
	s.t.Helper()
	l, err := world.kube.DiscoveryV1().EndpointSlices(s.name).List(s.t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service})
	require.NoError(s.t, err)
	pods := map[string]bool{}
	for _, slice := range l.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && *e.Conditions.Ready && e.TargetRef != nil {
				pods[e.TargetRef.Name] = true
			}
		}
	}
	return len(pods)
}

func TestAGuestMovesThereAndBackAndItsUsersGoOn(t *testing.T) {
	t.Parallel()
	for number, model := range []vmi.InterfaceModel{vmi.InterfaceModelVirtio, vmi.InterfaceModelE1000} {
		t.Run(string(model), func(t *testing.T) {
			s := newSpace(t)
			s.define(documentedLAN(t))
			s.service("mover")
			visitor := s.newVisitor()
			v := mover("mover", 10+number, model)
			s.create(v)
			v = s.awaitSteady("mover")
			before := visitor.state("http://mover")
			svc, err := world.kube.CoreV1().Services(s.name).Get(t.Context(), "mover", metav1.GetOptions{})
			require.NoError(t, err)

			const moves = 4
			var byICMP, byTCP, byClock, whole []time.Duration
			for range moves {
				from := v.Status.NodeName
				pings, dials := s.ping(from, movingAddress(10+number)), s.dial(from, svc.Spec.ClusterIP+":80")
				began := time.Now()
				m := s.awaitMigration(s.migrate("mover"), vmi.MigrationPhaseSucceeded)
				whole = append(whole, time.Since(began))
				v = s.moved(m, from)
				after := visitor.goesOn("http://mover", before)
				byICMP, byTCP = append(byICMP, pings.end()), append(byTCP, dials.end())
				byClock = append(byClock, after.offset-before.offset)
				before = after
				require.LessOrEqual(t, s.readyPods("mover"), 1)
				s.awaitOnePod(v)
				state, interfaces := v.Status.MigrationState, v.Status.Interfaces
				require.Equal(t, m.UID, state.MigrationUID)
				require.Equal(t, from, state.SourceNode)
				require.Equal(t, v.Status.NodeName, state.TargetNode)
				require.Equal(t, s.podOf(v).Name, state.TargetPod)
				require.Equal(t, s.podOf(v).Status.PodIP, interfaces[0].IP, "the address of the new pod")
			}
			for name, all := range map[string][]time.Duration{"ICMP every 5 ms": byICMP, "TCP every 10 ms": byTCP, "the guest's clock": byClock, "the whole migration": whole} {
				slices.Sort(all)
				t.Logf("%s: %s: median %s, worst %s of %d", model, name, all[len(all)/2].Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond), len(all))
			}
			s.delete("mover")
			s.awaitGone(v)
		})
	}
}

// podOf is the pod that the VMI runs in.
func (s space) podOf(v *vmi.VirtualMachineInstance) corev1.Pod {
	s.t.Helper()
	pods := slices.DeleteFunc(s.pods(v), func(p corev1.Pod) bool { return v.Status.ActivePods[p.UID] != v.Status.NodeName })
	require.Len(s.t, pods, 1)
	return pods[0]
}

// awaitOnePod waits until all pods of the VMI have ended but the one on its node.
func (s space) awaitOnePod(v *vmi.VirtualMachineInstance) {
	s.t.Helper()
	eventually(s.t, soon, func() error {
		for _, p := range s.pods(v) {
			if p.Spec.NodeName != v.Status.NodeName && p.Status.Phase != corev1.PodSucceeded {
				return fmt.Errorf("pod %s on node %s is %s", p.Name, p.Spec.NodeName, p.Status.Phase)
			}
		}
		return nil
	})
}

func TestAMigrationThatIsDeletedLeavesTheGuestAsItIs(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.define(documentedLAN(t))
	s.service("stays")
	visitor := s.newVisitor()
	s.create(mover("stays", 20, vmi.InterfaceModelVirtio))
	v := s.awaitSteady("stays")
	before := visitor.state("http://stays")
	for _, phase := range []vmi.MigrationPhase{vmi.MigrationPhasePending, vmi.MigrationPhaseScheduling, vmi.MigrationPhaseScheduled, vmi.MigrationPhaseRunning} {
		m := s.awaitMigration(s.migrate("stays"), phase)
		require.NoError(t, world.vmis.VirtualMachineInstanceMigrations(s.name).Delete(t.Context(), m.Name, metav1.DeleteOptions{}))
		eventually(t, long, func() error {
			_, err := world.vmis.VirtualMachineInstanceMigrations(s.name).Get(t.Context(), m.Name, metav1.GetOptions{})
			if err == nil {
				return fmt.Errorf("migration %s is still there", m.Name)
			}
			if !apierrors.IsNotFound(err) {
				return err
			}
			return nil
		})
		now := s.get("stays")
		// One that was at its last step may have succeeded meanwhile.
		if s := now.Status.MigrationState; s != nil && s.MigrationUID == m.UID && !s.Failed {
			require.True(t, s.Completed, "%+v", s)
			require.NotEqual(t, v.Status.NodeName, now.Status.NodeName)
		} else if s != nil && s.MigrationUID == m.UID {
			require.True(t, s.AbortRequested, "%+v", s)
			require.Contains(t, s.FailureReason, "has been aborted")
			require.Equal(t, v.Status.NodeName, now.Status.NodeName)
		}
		v = now
		s.awaitOnePod(v)
		before = visitor.goesOn("http://stays", before)
	}
}

func TestOnlyOneMigrationOfAVMIIsAccepted(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.create(guest("once", cloudConfig("hostname: once"), vmitest.WithGracePeriod(1)))
	s.awaitSteady("once")
	from := s.get("once").Status.NodeName
	m := s.migrate("once")
	_, err := world.vmis.VirtualMachineInstanceMigrations(s.name).Create(t.Context(), &vmi.VirtualMachineInstanceMigration{
		ObjectMeta: metav1.ObjectMeta{Name: "second"}, Spec: vmi.VirtualMachineInstanceMigrationSpec{VMIName: "once"},
	}, metav1.CreateOptions{})
	require.ErrorContains(t, err, "in-flight migration detected.")
	s.moved(s.awaitMigration(m, vmi.MigrationPhaseSucceeded), from)
}

func TestAClaimForManyNodesMovesAndOneForASingleNodeDoesNot(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.service("claims")
	visitor := s.newVisitor()
	for name, mode := range map[string]corev1.PersistentVolumeMode{"claim-files": corev1.PersistentVolumeFilesystem, "claim-block": corev1.PersistentVolumeBlock} {
		s.claimWith(name, "32Mi", mode, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		})
	}
	v := guest("claims", keepsJournal, withClaim("claim-files"), withClaim("claim-block"), vmitest.WithGracePeriod(3))
	for n := range v.Spec.Domain.Devices.Disks {
		if d := &v.Spec.Domain.Devices.Disks[n]; d.Name == "claim-block" {
			d.Serial = "journal"
		}
	}
	s.create(v)
	v = s.awaitSteady("claims")
	before := visitor.state("http://claims")
	for range 2 {
		from := v.Status.NodeName
		v = s.moved(s.awaitMigration(s.migrate("claims"), vmi.MigrationPhaseSucceeded), from)
		before = visitor.goesOn("http://claims", before)
		s.awaitOnePod(v)
	}
	s.delete("claims")

	s.claim("claim-one", "16Mi", corev1.PersistentVolumeBlock, nil)
	s.create(guest("single", "#!/bin/sh\n", withClaim("claim-one"), vmitest.WithGracePeriod(1)))
	s.awaitPhase("single", vmi.PhaseRunning)
	_, err := world.vmis.VirtualMachineInstanceMigrations(s.name).Create(t.Context(), &vmi.VirtualMachineInstanceMigration{
		ObjectMeta: metav1.ObjectMeta{Name: "refused"}, Spec: vmi.VirtualMachineInstanceMigrationSpec{VMIName: "single"},
	}, metav1.CreateOptions{})
	require.ErrorContains(t, err, "DisksNotLiveMigratable")
	require.True(t, errors.As(err, new(apierrors.APIStatus)))
}
