package e2e

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/e2e/fault"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/migrationpolicy"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// counterCode is testdata/counter.s.
const counterCode = "" +
	"fa31c08ed88ec08ed0bc007cfcfb0f3166a3aa7cf4f4668b1eae7c6685db" +
	"741db442e85100720766391e0080740fb03ce86600b021e86100b03ee85c" +
	"0066ff06ae7c66a1ae7c66a30080b80043e8260072dcb03ce8420066a1aa" +
	"7ce82000b020e8360066a1ae7ce81400b03ee82a00b00ae82500eb9ebeb2" +
	"7cb281cd13c3b9080066c1c0046650240f04303c3976020427e805006658" +
	"e2e9c388c4bafd03eca82074fb88e0baf803eec300000000000000001000" +
	"0100008000000000000000000000"

const counterImage = "localhost/counter:e2e"

// loadCounter brings the image of the guest that counts to the nodes.
func loadCounter(t *testing.T) {
	t.Helper()
	code, err := hex.DecodeString(counterCode)
	require.NoError(t, err)
	disk := make([]byte, 1<<20)
	copy(disk, code)
	disk[510], disk[511] = 0x55, 0xaa
	require.NoError(t, world.cluster.Load(t.Context(), imageOf(t, counterImage, []entry{{"disk/", 107, 0o755, ""}, {"disk/disk.img", 107, 0o440, string(disk)}})))
}

// counter is a guest that counts on its console and on the claim data.
func counter(name string) *vmi.VirtualMachineInstance {
	v := vmitest.New(vmitest.WithName(name), vmitest.WithContainerDisk("boot", counterImage), withClaim("data"),
		vmitest.WithMasquerade("default"), vmitest.WithMemory("64Mi"), vmitest.WithGracePeriod(1))
	v.UID = ""
	for n := range v.Spec.Domain.Devices.Disks {
		v.Spec.Domain.Devices.Disks[n].BootOrder = new(uint(n + 1))
	}
	return v
}

// moveKinds are the faults of both sides of a migration, and of what moves the guest.
var moveKinds = map[string][]fault.Kind{
	"source-launcher": {fault.Killed}, "target-launcher": {fault.Killed},
	"source-libvirtd": {fault.Killed}, "target-libvirtd": {fault.Killed},
	"source-QEMU": {fault.Killed}, "target-QEMU": {fault.Killed},
	"source-pod": {fault.Removed}, "target-pod": {fault.Removed},
	"source-handler": {fault.Killed}, "target-handler": {fault.Killed},
	"virt-controller": {fault.Killed},
}

// clusterPrograms are those of moveKinds that all VMIs of a node or of the cluster have.
var clusterPrograms = []string{"source-handler", "target-handler", "virt-controller"}

// moveRoles are the roles of the processes of the pods by which the components are named.
var moveRoles = map[string]string{"launcher": "virt-launcher", "libvirtd": "libvirtd", "QEMU": "QEMU"}

// journey is what was seen of a VMI that moves. The lock of the scene guards it.
type journey struct {
	migration      *vmi.VirtualMachineInstanceMigration // as it was last
	source, target moveSide
	at             time.Time // when the fault came; zero: it has not
}

// moveSide is one of the two pods of a VMI that moves.
type moveSide struct {
	uid   types.UID
	name  string
	node  string
	phase corev1.PodPhase
	gone  bool

	log  *os.File // of its launcher and its guest; nil: there is none yet
	text []byte   // what was read of it
}

// read reads what is new in the log.
func (d *moveSide) read(namespace string) {
	if d.log == nil {
		f, err := os.Open(fmt.Sprintf("%s/var/log/pods/%s_%s_%s/%s/0.log", root(d.node), namespace, d.name, d.uid, vmi.ComputeContainer))
		if err != nil {
			return // it is not there yet
		}
		d.log = f
	}
	b, _ := io.ReadAll(d.log)
	d.text = append(d.text, b...)
}

// said is when the log has the line first. Zero: it has not.
func (d *moveSide) said(text string) (at time.Time) {
	before, _, ok := strings.Cut(string(d.text), text)
	if !ok {
		return at
	}
	line := before[strings.LastIndexByte(before, '\n')+1:]
	stamp, _, _ := strings.Cut(line, " ")
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return time.Now() // the line begins elsewhere
	}
	return at
}

var countPattern = regexp.MustCompile(`<([0-9a-f]{8}) ([0-9a-f]{8})>`)

// counts are the starts of guests that the log names, and the numbers, in their order.
func (d *moveSide) counts() (starts []string, numbers []uint64) {
	for _, m := range countPattern.FindAllSubmatch(d.text, -1) {
		if s := string(m[1]); !slices.Contains(starts, s) {
			starts = append(starts, s)
		}
		n, _ := strconv.ParseUint(string(m[2]), 16, 64)
		numbers = append(numbers, n)
	}
	return starts, numbers
}

// last is the last number of the log, or 0.
func (d *moveSide) last() uint64 {
	_, numbers := d.counts()
	if len(numbers) == 0 {
		return 0
	}
	return numbers[len(numbers)-1]
}

// of is the side that the component is of.
func (j *journey) of(component string) (d *moveSide, program string) {
	where, program, _ := strings.Cut(component, "-")
	switch where {
	case "source":
		return &j.source, program
	case "target":
		return &j.target, program
	}
	return &moveSide{}, program
}

// pids are the processes of the component.
func (j *journey) pids(component string) (pids []int) {
	d, program := j.of(component)
	for _, p := range watched().pods() {
		switch {
		case program == "handler" && p.role() == "virt-handler" && p.node == d.node,
			program == "controller" && p.role() == "virt-controller",
			d.uid != "" && p.pod == d.uid && moveRoles[program] != "" && p.role() == moveRoles[program]:
			pids = append(pids, p.pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// components are those that there are now.
func (j *journey) components() (all []string) {
	for c, kinds := range moveKinds {
		d, _ := j.of(c)
		if kinds[0] == fault.Removed && d.uid != "" && !d.gone || len(j.pids(c)) > 0 {
			all = append(all, c)
		}
	}
	slices.Sort(all)
	return all
}

// moves notes what the VMI says.
func (s *scene) moves(l *life, v *vmi.VirtualMachineInstance) {
	j := l.journey
	if j.source.node != "" && v.Status.NodeName != j.source.node && v.Status.NodeName != "" {
		s.see(l, "switched")
	}
}

// migrationOf notes a migration.
func (s *scene) migrationOf(m *vmi.VirtualMachineInstanceMigration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lives {
		if l.journey == nil || l.name != m.Spec.VMIName {
			continue
		}
		l.journey.migration = m
		s.see(l, "migration "+cmp.Or(string(m.Status.Phase), "created"))
	}
}

// movePod notes a pod of a VMI that moves.
func (s *scene) movePod(l *life, p *corev1.Pod, gone bool) {
	j := l.journey
	d, name := &j.source, "source"
	if p.Labels[vmi.MigrationJobLabel] != "" {
		d, name = &j.target, "target"
	}
	d.uid, d.name, d.node, d.phase, d.gone = p.UID, p.Name, p.Spec.NodeName, p.Status.Phase, gone
	if name == "target" {
		s.see(l, "target created")
		if d.node != "" {
			s.see(l, "target bound")
		}
	}
	if d.over() {
		s.see(l, name+" pod ended")
	}
}

// over says that the pod has ended.
func (d *moveSide) over() bool {
	return d.gone || d.phase == corev1.PodSucceeded || d.phase == corev1.PodFailed
}

// moveProcesses sees the processes of a VMI that moves, and reads the logs of its launchers.
func (s *scene) moveProcesses(l *life, all []process) {
	j := l.journey
	for name, d := range map[string]*moveSide{"source": &j.source, "target": &j.target} {
		now := map[string]bool{}
		for _, p := range all {
			if d.uid == "" || p.pod != d.uid {
				continue
			}
			now[p.role()] = true
			switch p.role() {
			case "virt-launcher":
				s.netnsOf(l, p)
			case "QEMU":
				if !slices.ContainsFunc(l.qemus, func(q process) bool { return q.pid == p.pid && q.began == p.began }) {
					l.qemus = append(l.qemus, p)
				}
			}
		}
		d.read(s.name)
		if j.migration == nil {
			continue
		}
		if name == "target" {
			for _, role := range []string{"virt-launcher", "libvirtd", "QEMU"} {
				if now[role] {
					s.see(l, "target "+role+" started")
				}
			}
			if !d.said(`"msg":"the guest runs here"`).IsZero() {
				s.see(l, "guest runs at the target")
			}
			continue
		}
		if !d.said(`"msg":"the guest stands still"`).IsZero() {
			s.see(l, "guest stands still")
		}
		if !d.said(sentLine).IsZero() {
			s.see(l, "everything is sent")
		}
		if !now["QEMU"] {
			s.see(l, "source QEMU ended")
		}
		if !now["virt-launcher"] {
			s.see(l, "source launcher ended")
		}
	}
}

// sentLine is what the launcher of the source says when everything is at the target.
const sentLine = `"msg":"everything is sent"`

// lateMoves are the states of a migration at which something may have ended that a fault is for.
var lateMoves = []string{
	"guest stands still", "everything is sent", "guest runs at the target", "switched", "migration Succeeded",
	"source QEMU ended", "source launcher ended", "source pod ended",
}

// remove deletes a pod of the VMI at once, without its kubelet.
func (s *scene) remove(l *life) bool {
	d, _ := l.journey.of(s.Component)
	if d.uid == "" || d.gone {
		return false
	}
	name, options := d.name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &d.uid}}
	s.faults.Go(func() {
		s.err = world.kube.CoreV1().Pods(s.space.name).Delete(context.Background(), name, options)
	})
	return true
}

// traceMove makes a VMI whose guest counts, moves it to the other node, and deletes it when it
// counts on.
func (s *scene) traceMove() {
	s.slowly(func(*migrationpolicy.MigrationPolicySpec) {})
	s.claimWith("data", "16Mi", corev1.PersistentVolumeFilesystem, func(c *corev1.PersistentVolumeClaim) {
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	})
	v := s.create(counter("move"))
	s.awaitPhase("move", vmi.PhaseRunning)
	eventually(s.t, soon, func() error {
		if j := s.journey(); j.source.last() == 0 {
			return fmt.Errorf("the guest has not counted: %q", j.source.text)
		}
		return nil
	})
	s.migrate("move")
	s.awaitJourney()
	s.awaitFault()
	s.judgeJourney()
	s.delete("move")
	s.awaitGone(v)
	require.NoError(s.t, world.kube.CoreV1().PersistentVolumeClaims(s.name).Delete(s.t.Context(), "data", metav1.DeleteOptions{}))
}

// journey is a copy of what was seen of the VMI that moves.
func (s *scene) journey() journey {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lives {
		if l.journey != nil {
			return *l.journey
		}
	}
	return journey{}
}
