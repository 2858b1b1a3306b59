package e2e

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/migrationpolicy"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// movingAddress is the address of the mover of that number on the secondary bridge.
func movingAddress(number int) string { return fmt.Sprintf("192.168.82.%d", number) }

// keepsJournal writes records to the disk with the serial number journal, past all caches,
// and reads each one back before it writes the next. The page state has the boot ID, the
// number of the last record and the uptime, and the page faults what was not as written.
// Between two records it rests, or it takes an emulated processor from the other guests.
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
  printf '%-4095s\n' "$text $(echo $text | md5sum)" > /tmp/record
  dd if=/tmp/record of=$disk bs=4096 seek=$((n % 64)) count=1 oflag=direct conv=notrunc 2>/dev/null || fault "record $n cannot be written"
  read up idle < /proc/uptime
  echo "$boot $n $up" > /www/.state
  mv /www/.state /www/state
  usleep 200000
done &
`

// mover is a guest that keeps a journal, and else as those of [onLAN].
func mover(name string, number int, model vmi.InterfaceModel, options ...vmitest.Option) *vmi.VirtualMachineInstance {
	v := onLAN(name, keepsJournal, number, model, append([]vmitest.Option{vmitest.WithEmptyDisk("journal", "16Mi")}, options...)...)
	onJournal(v)
	return v
}

// onLAN is a guest with an interface of the model on the bridge lan, where all tests are: each
// guest has a number of its own.
func onLAN(name, userData string, number int, model vmi.InterfaceModel, options ...vmitest.Option) *vmi.VirtualMachineInstance {
	v := guest(name, userData, append([]vmitest.Option{vmitest.WithMultus("second", "lan"), vmitest.WithGracePeriod(3)}, options...)...)
	v.Spec.Domain.Devices.Interfaces[1].MacAddress, v.Spec.Domain.Devices.Interfaces[1].Model = fmt.Sprintf("02:00:00:00:82:%02x", number), model
	withNetworkData(v, "version: 2\nethernets:\n  eth1: {addresses: ["+movingAddress(number)+"/24]}\n")
	return v
}

// onJournal gives the disk of the journal its serial number.
func onJournal(v *vmi.VirtualMachineInstance) {
	for n := range v.Spec.Domain.Devices.Disks {
		if d := &v.Spec.Domain.Devices.Disks[n]; d.Name == "journal" {
			d.Serial, d.Disk = "journal", &vmi.DiskTarget{Bus: vmi.DiskBusVirtio}
		}
	}
}

// readsFiles makes a page of the sum of what is on the CD-ROM of SCSI and on the disk with the
// serial number secret, read anew.
const readsFiles = `#!/bin/sh
mkdir -p /www/cgi-bin
cat > /www/cgi-bin/files <<'EOF'
#!/bin/sh
printf 'Content-Type: text/plain\r\n\r\n'
echo 3 > /proc/sys/vm/drop_caches
for b in /sys/block/vd*; do [ "$(cat $b/serial)" != secret ] || md5sum < /dev/${b##*/}; done
md5sum < /dev/sr0
EOF
chmod 755 /www/cgi-bin/files
`

// withFiles adds to the VMI files of a ConfigMap and of a Secret, on CD-ROMs and on a disk, and
// a USB tablet.
func (s space) withFiles(v *vmi.VirtualMachineInstance) {
	s.t.Helper()
	s.files("as they were")
	for n := range v.Spec.Volumes {
		if in := v.Spec.Volumes[n].CloudInitNoCloud; in != nil {
			in.UserData = readsFiles + in.UserData
		}
	}
	config := vmi.VolumeSource{ConfigMap: &vmi.ConfigMapVolume{LocalObjectReference: corev1.LocalObjectReference{Name: "files"}}}
	secret := vmi.VolumeSource{Secret: &vmi.SecretVolume{SecretName: "files"}}
	withVolume("secret", secret)(v)
	vmitest.WithDisk("config", config)(v)
	vmitest.WithDisk("sata", secret)(v)
	d := &v.Spec.Domain.Devices
	d.Disks[len(d.Disks)-2].Disk, d.Disks[len(d.Disks)-2].CDRom = nil, &vmi.CDRomTarget{Bus: vmi.DiskBusSCSI}
	d.Disks[len(d.Disks)-1].Disk, d.Disks[len(d.Disks)-1].CDRom = nil, &vmi.CDRomTarget{Bus: vmi.DiskBusSATA}
	d.Inputs = []vmi.Input{{Name: "tablet", Type: vmi.InputTablet, Bus: vmi.InputBusUSB}}
}

// files makes the ConfigMap and the Secret, or replaces them.
func (s space) files(text string) {
	s.t.Helper()
	core := world.kube.CoreV1()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "files"}, Data: map[string]string{"file": text}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "files"}, StringData: map[string]string{"file": text}}
	_, err := core.ConfigMaps(s.name).Create(s.t.Context(), config, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = core.ConfigMaps(s.name).Update(s.t.Context(), config, metav1.UpdateOptions{})
	}
	require.NoError(s.t, err)
	_, err = core.Secrets(s.name).Create(s.t.Context(), secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = core.Secrets(s.name).Update(s.t.Context(), secret, metav1.UpdateOptions{})
	}
	require.NoError(s.t, err)
}

// The flags of make test-migrations, and what is enough else.
var (
	moves     = flag.Int("moves", 2, "how often a guest moves there and back")
	idleMoves = flag.Int("idle", 2, "how often an idle guest moves there and back")
	slowMove  = flag.Duration("slow", 30*time.Second, "how long a migration may take that is too slow")
)

// migrate creates a migration of the VMI.
func (s space) migrate(name string) *vmi.VirtualMachineInstanceMigration {
	s.t.Helper()
	m, err := world.vmis.VirtualMachineInstanceMigrations(s.name).Create(s.t.Context(), &vmi.VirtualMachineInstanceMigration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}, Spec: vmi.VirtualMachineInstanceMigrationSpec{VMIName: name},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	return m
}

// moves migrates the VMI until it has moved. A migration fails that does not begin within a
// minute, which is not enough for the start of a launcher on a very busy host. Users begin
// another one then.
func (s space) moves(name string) *vmi.VirtualMachineInstanceMigration {
	s.t.Helper()
	for n := 1; ; n++ {
		m := s.migrate(name)
		eventually(s.t, long, func() (err error) {
			m, err = world.vmis.VirtualMachineInstanceMigrations(s.name).Get(s.t.Context(), m.Name, metav1.GetOptions{})
			if err == nil && m.Status.Phase != vmi.MigrationPhaseSucceeded && m.Status.Phase != vmi.MigrationPhaseFailed {
				err = fmt.Errorf("migration %s is %q: %+v", m.Name, m.Status.Phase, m.Status)
			}
			return err
		})
		if m.Status.Phase == vmi.MigrationPhaseSucceeded {
			return m
		}
		why := m.Status.MigrationState
		require.NotNil(s.t, why, "migration %s failed: %+v", m.Name, m.Status)
		require.Regexp(s.t, "(did|could) not begin within", why.FailureReason)
		require.Less(s.t, n, 3, "no migration begins")
		s.t.Logf("migration %s failed: %s", m.Name, why.FailureReason)
	}
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
	require.NotEmpty(s.t, now.Mode)
	require.NotEmpty(s.t, now.TargetNodeAddress, "also if the target has written before the source, as on a busy node")
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
			if model == vmi.InterfaceModelE1000 { // Services have to wait for the kubelet too
				web := vmi.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}
				v.Spec.LivenessProbe = &vmi.Probe{ProbeHandler: web, TimeoutSeconds: 5, FailureThreshold: 30} // an emulated guest boots for minutes
				v.Spec.ReadinessProbe = &vmi.Probe{ProbeHandler: web, TimeoutSeconds: 5}
			}
			s.withFiles(v)
			s.create(v)
			v = s.awaitSteady("mover")
			files := visitor.awaitPage("http://mover/cgi-bin/files")
			require.Regexp(t, `^[0-9a-f]{32}  -\n[0-9a-f]{32}  -\s*$`, files)
			s.files("as they are now")
			before := visitor.state("http://mover")
			svc, err := world.kube.CoreV1().Services(s.name).Get(t.Context(), "mover", metav1.GetOptions{})
			require.NoError(t, err)

			var byICMP, byTCP, byClock, whole []time.Duration
			var parts []switchover
			for range *moves {
				from := v.Status.NodeName
				pings, dials := s.ping(from, movingAddress(10+number)), s.dial(from, svc.Spec.ClusterIP+":80")
				began := time.Now()
				m := s.moves("mover")
				whole = append(whole, time.Since(began))
				logs := s.logsOf(m)
				v = s.moved(m, from)
				after := visitor.goesOn("http://mover", before)
				byICMP, byTCP = append(byICMP, pings.end()), append(byTCP, dials.end())
				parts = append(parts, s.switchover(logs, pings))
				byClock = append(byClock, after.offset-before.offset)
				before = after
				require.Equal(t, files, visitor.awaitPage("http://mover/cgi-bin/files"), "the guest has the files that it had")
				require.LessOrEqual(t, s.readyPods("mover"), 1)
				s.awaitOnePod(v)
				state, interfaces := v.Status.MigrationState, v.Status.Interfaces
				require.Equal(t, m.UID, state.MigrationUID)
				require.Equal(t, from, state.SourceNode)
				require.Equal(t, v.Status.NodeName, state.TargetNode)
				require.Equal(t, s.podOf(v).Name, state.TargetPod)
				require.Equal(t, s.podOf(v).Status.PodIP, interfaces[0].IP, "the address of the new pod")
			}
			if model != vmi.InterfaceModelVirtio {
				byICMP = nil // the guest's kernel has no driver for it
			}
			for name, all := range map[string][]time.Duration{"ICMP every 5 ms": byICMP, "TCP every 10 ms": byTCP, "the guest's clock": byClock, "the whole migration": whole} {
				if len(all) == 0 {
					continue
				}
				slices.Sort(all)
				t.Logf("%s: %s: median %s, worst %s of %d", model, name, all[len(all)/2].Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond), len(all))
			}
			t.Logf("%s: the switch, medians of %d:\n%s", model, len(parts), table(parts))
			s.delete("mover")
			s.awaitGone(v)
		})
	}
}

// The time without an answer is that of the switch: a guest that does nothing answers until then.
func TestAnIdleGuestThatMovesAnswersUntilTheSwitch(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.define(documentedLAN(t))
	s.create(onLAN("idle", "", 12, vmi.InterfaceModelVirtio))
	v := s.awaitSteady("idle")
	var all []time.Duration
	var parts []switchover
	for range *idleMoves {
		from := v.Status.NodeName
		pings := s.ping(from, movingAddress(12))
		eventually(t, soon, func() error {
			if pings.count() == 0 {
				return errors.New("the guest does not answer yet")
			}
			return nil
		})
		m := s.moves("idle")
		logs := s.logsOf(m)
		v = s.moved(m, from)
		after := pings.count()
		eventually(t, soon, func() error {
			if pings.count() == after {
				return errors.New("the guest does not answer at the target")
			}
			return nil
		})
		all = append(all, pings.end())
		parts = append(parts, s.switchover(logs, pings))
	}
	slices.Sort(all)
	t.Logf("ICMP every 5 ms: median %s, worst %s of %d", all[len(all)/2].Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond), len(all))
	t.Logf("the switch, medians of %d:\n%s", len(parts), table(parts))
	s.delete("idle")
	s.awaitGone(v)
}

// podOf is the pod that the VMI runs in.
func (s space) podOf(v *vmi.VirtualMachineInstance) corev1.Pod {
	s.t.Helper()
	pods := slices.DeleteFunc(s.pods(v), func(p corev1.Pod) bool { return v.Status.ActivePods[p.UID] != v.Status.NodeName })
	require.Len(s.t, pods, 1)
	return pods[0]
}

// awaitOnePod waits until all pods of the VMI have ended but the one on its node. A target that
// the guest did not come to may have failed. It may start first and then take its grace period, of
// 50 seconds and more: longer than a minute where the host is busy.
func (s space) awaitOnePod(v *vmi.VirtualMachineInstance) {
	s.t.Helper()
	eventually(s.t, long, func() error {
		for _, p := range s.pods(v) {
			cancelled := p.Status.Phase == corev1.PodFailed && p.Labels[vmi.MigrationJobLabel] != ""
			if p.Spec.NodeName != v.Status.NodeName && p.Status.Phase != corev1.PodSucceeded && !cancelled {
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

// noWayOut is a NetworkPolicy that lets no connection out of any pod.
const noWayOut = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: no-way-out}
spec: {podSelector: {}, policyTypes: [Egress], egress: []}
`

func TestTheStreamsOfAGuestSayWhereItHasMovedTo(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	u := s.user("edit")
	s.create(guest("once", cloudConfig("hostname: once"), vmitest.WithGracePeriod(1)))
	s.awaitSteady("once")
	_, err := world.kubectl.RunInput(t.Context(), strings.NewReader(noWayOut), "-n", s.name, "apply", "-f", "-")
	require.NoError(t, err)
	from := s.get("once").Status.NodeName
	console := u.console("once")
	console.shows("root@once", "\r")
	console.types("cd /tmp\r")
	streams := map[string]*terminal{"console": console, "screen": u.watch(u.screen("once", client.VNCOptions{}))}

	m := s.migrate("once")
	_, err = world.vmis.VirtualMachineInstanceMigrations(s.name).Create(t.Context(), &vmi.VirtualMachineInstanceMigration{
		ObjectMeta: metav1.ObjectMeta{Name: "second"}, Spec: vmi.VirtualMachineInstanceMigrationSpec{VMIName: "once"},
	}, metav1.CreateOptions{})
	require.ErrorContains(t, err, "in-flight migration detected.", "only one migration of a VMI is accepted")
	console.isCut()
	began := time.Now()
	stream, err := u.vmis.Console(t.Context(), "once") // at once: nothing is to be waited for
	require.NoError(t, err)
	again := u.watch(stream)
	t.Logf("the console is open again after %s", time.Since(began))
	v := s.moved(s.awaitMigration(m, vmi.MigrationPhaseSucceeded), from)
	for what, stream := range streams {
		stream.isCut()
		require.ErrorContains(t, stream.err, "moved to node "+v.Status.NodeName, what)
	}
	again.shows("/tmp", "pwd\r")
	require.NoError(t, u.screen("once", client.VNCOptions{}).Close())
	u.usePort("once")
}

// usePort gets the page of the VMI over a forwarded port.
func (u user) usePort(name string) {
	u.t.Helper()
	web := http.Client{Timeout: soon, Transport: &http.Transport{DialContext: u.vmis.PortForward(name), DisableKeepAlives: true}}
	answer, err := web.Get("http://" + name)
	require.NoError(u.t, err)
	require.NoError(u.t, answer.Body.Close())
}

func TestAGuestThatMemoryCannotBeSentOfInTimeStaysAndIsLive(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.service("busy")
	visitor := s.newVisitor()
	atOnce := s.slowly(func(p *migrationpolicy.MigrationPolicySpec) {
		p.AllowAutoConverge, p.CompletionTimeoutPerGiB = new(true), new(int64(*slowMove/time.Second))
	})
	v := guest("busy", keepsJournal+"while :; do dd if=/dev/urandom of=/tmp/busy bs=1M count=4 conv=notrunc 2>/dev/null; sleep 1; done &\n", vmitest.WithEmptyDisk("journal", "16Mi"), vmitest.WithGracePeriod(3))
	onJournal(v)
	// Nothing asks the target while it waits, or it ends before the time is over. The guest boots
	// before it is asked.
	v.Spec.LivenessProbe = &vmi.Probe{ProbeHandler: vmi.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}},
		PeriodSeconds: 1, TimeoutSeconds: 5, FailureThreshold: 10, InitialDelaySeconds: 240}
	s.create(v)
	v = s.awaitSteady("busy")
	before := visitor.state("http://busy")

	began := time.Now()
	m := s.awaitMigration(s.migrate("busy"), vmi.MigrationPhaseRunning)
	for _, p := range s.pods(v) {
		waits := p.Name != s.podOf(v).Name
		require.Equal(t, !waits, *p.Status.ContainerStatuses[0].Started, "nothing is asked in the pod that waits: %s", p.Name)
	}
	m = s.awaitMigration(m, vmi.MigrationPhaseFailed)
	require.GreaterOrEqual(t, time.Since(began), *slowMove)
	now := s.get("busy")
	require.Contains(t, now.Status.MigrationState.FailureReason, "has been aborted: it was not complete after")
	require.Equal(t, m.UID, now.Status.MigrationState.MigrationUID)
	require.Equal(t, s.name, *now.Status.MigrationState.MigrationPolicyName)
	require.False(t, now.Status.MigrationState.AbortRequested, "no user has asked for it")
	require.Equal(t, v.Status.NodeName, now.Status.NodeName)
	require.Equal(t, vmi.PhaseRunning, now.Status.Phase)
	require.Nil(t, now.Status.Condition(vmi.ConditionPaused))
	s.awaitOnePod(now)
	before = visitor.goesOn("http://busy", before)

	atOnce()
	v = s.moved(s.moves("busy"), v.Status.NodeName)
	visitor.goesOn("http://busy", before)
	require.True(t, *s.podOf(v).Status.ContainerStatuses[0].Started, "the guest is asked there from now on")
}

func TestAGuestWhoseImageIsAnotherOnTheOtherNodeStays(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	disk := demoDisk(t)
	content, err := os.ReadFile(disk)
	require.NoError(t, err)
	content[len(content)-1] ^= 1
	require.NoError(t, os.WriteFile(disk, content, 0o600))
	other, image := "localhost/other-"+s.name+":e2e", "localhost/moves-"+s.name+":e2e"
	require.NoError(t, world.cluster.Load(t.Context(), pack(t, other, disk)))
	for node, from := range map[string]string{"n1": images.Reference("demo-guest"), "n2": other} {
		out, err := world.cluster.Node(node).Command(t.Context(), "ctr", "-n", "k8s.io", "images", "tag", "--force", from, image).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	v := guest("same-tag", cloudConfig("hostname: same-tag"), vmitest.WithGracePeriod(1))
	v.Spec.Volumes[0].ContainerDisk.Image = image
	s.create(v)
	v = s.awaitSteady("same-tag")
	m := s.awaitMigration(s.migrate("same-tag"), vmi.MigrationPhaseFailed)
	now := s.get("same-tag")
	require.Equal(t, m.UID, now.Status.MigrationState.MigrationUID)
	for _, says := range []string{"ContainerDiskChanged: ", "volume root: ", "its content is sha256:"} {
		require.Contains(t, now.Status.MigrationState.FailureReason, says)
	}
	require.Equal(t, v.Status.NodeName, now.Status.NodeName)
	require.Equal(t, vmi.PhaseRunning, now.Status.Phase)
	s.awaitOnePod(now)
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
	for range max(2, *moves/2) {
		from := v.Status.NodeName
		v = s.moved(s.moves("claims"), from)
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
