package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podvisor/podvisor/e2e/fault"
	"github.com/podvisor/podvisor/vmi"
)

// life is what was seen of one VMI.
type life struct {
	number int // among those of the name, from 1 on
	name   string
	uid    types.UID
	phases []vmi.Phase
	reason string
	gone   bool
	pods   []types.UID
	qemus  []process // each that there was
	seen   map[string]bool
	netns  map[types.UID]uint64 // of pods

	journey *journey // of a VMI that moves; nil: it does not
}

// scene is a trace that is watched, with a fault or none.
type scene struct {
	space
	fault.Point
	node string

	// want is what there is at the rests without a fault. Nil: it is not known yet.
	want  map[string]shot
	shots map[string]shot

	mu    sync.Mutex
	lives []*life
	// steps are those that were seen, in this order, with the components that ran then.
	steps   []fault.Step
	running map[fault.Step][]string
	hit     bool
	late    *life          // that of the fault, if what the fault is for was not there at its step
	faults  sync.WaitGroup // those that last
	err     error
}

// watch begins to watch the namespace, until the test ends.
func (s *scene) watch() {
	s.t.Helper()
	s.running = map[fault.Step][]string{}
	ctx, cancel := context.WithCancel(context.Background())
	vmis, err := world.vmis.VirtualMachineInstances(s.name).Watch(ctx, metav1.ListOptions{})
	require.NoError(s.t, err)
	pods, err := world.kube.CoreV1().Pods(s.name).Watch(ctx, metav1.ListOptions{LabelSelector: vmi.AppLabel + "=" + vmi.LauncherApp})
	require.NoError(s.t, err)
	migrations, err := world.vmis.VirtualMachineInstanceMigrations(s.name).Watch(ctx, metav1.ListOptions{})
	require.NoError(s.t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for e := range migrations.ResultChan() {
			if m, ok := e.Object.(*vmi.VirtualMachineInstanceMigration); ok {
				s.migrationOf(m)
			}
		}
	})
	wg.Go(func() {
		for e := range vmis.ResultChan() {
			if v, ok := e.Object.(*vmi.VirtualMachineInstance); ok {
				s.instance(v, e.Type == watch.Deleted)
			}
		}
	})
	wg.Go(func() {
		for e := range pods.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok {
				s.launcherPod(p, e.Type == watch.Deleted)
			}
		}
	})
	end := watched().each(s.processes)
	s.t.Cleanup(func() {
		end()
		cancel()
		vmis.Stop()
		pods.Stop()
		migrations.Stop()
		wg.Wait()
		s.faults.Wait()
	})
}

// life is the life of the VMI. The caller has locked s.
func (s *scene) life(uid types.UID) *life {
	for _, l := range s.lives {
		if l.uid == uid {
			return l
		}
	}
	l := &life{uid: uid, number: len(s.lives) + 1, seen: map[string]bool{}, netns: map[types.UID]uint64{}}
	s.lives = append(s.lives, l)
	return l
}

// named gives the life its name. That of a VMI that moves has a journey.
func (l *life) named(name string) {
	if l.name = name; name == "move" && l.journey == nil {
		l.journey = &journey{}
	}
}

// see notes a state of a VMI, and injects the fault if that is to be now, or as soon as there is
// what it is for: on a busy host a process is seen later than what it did. The caller has locked s.
func (s *scene) see(l *life, state string) {
	if l.seen[state] || l.name == "" {
		return
	}
	l.seen[state] = true
	step := fault.Step{Name: l.name + " " + state, Number: l.number}
	s.steps = append(s.steps, step)
	s.running[step] = s.components(l)
	if step == s.Step && !s.hit {
		if s.hit = s.inject(l); !s.hit && l.journey == nil {
			s.late = l
		}
	}
}

func (s *scene) instance(v *vmi.VirtualMachineInstance, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.life(v.UID)
	l.named(v.Name)
	if len(l.phases) == 0 || l.phases[len(l.phases)-1] != v.Status.Phase {
		l.phases = append(l.phases, v.Status.Phase)
	}
	l.reason, l.gone = v.Status.Reason, gone
	if l.journey != nil {
		s.moves(l, v)
		return
	}
	s.see(l, "created")
	if v.Status.Phase == vmi.PhaseScheduled {
		s.see(l, "handed over")
	}
	if v.Status.Phase == vmi.PhaseRunning {
		s.see(l, "running")
	}
	if c := v.Status.Condition(vmi.ConditionAgentConnected); c != nil && c.Status == corev1.ConditionTrue {
		s.see(l, "booted")
	}
	if v.DeletionTimestamp != nil {
		s.see(l, "stop asked")
	}
	if v.Status.Phase.Final() {
		s.see(l, "end written")
	}
	if gone {
		s.see(l, "gone")
	}
}

func (s *scene) launcherPod(p *corev1.Pod, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.life(types.UID(p.Labels[vmi.CreatedByLabel]))
	if l.name == "" {
		l.named(p.Annotations[vmi.DomainAnnotation])
	}
	if !slices.Contains(l.pods, p.UID) {
		l.pods = append(l.pods, p.UID)
	}
	if l.journey != nil {
		s.movePod(l, p, gone)
		return
	}
	s.see(l, "pod created")
	if p.Spec.NodeName != "" {
		s.see(l, "pod bound")
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.Name == vmi.ComputeContainer && c.State.Running != nil {
			s.see(l, "pod running")
		}
	}
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		s.see(l, "pod ended")
	}
	if gone {
		s.see(l, "pod gone")
	}
}

// processes sees the states of the pods on their nodes.
func (s *scene) processes(all []process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lives {
		if l.seen["launcher ended"] && l.gone {
			continue
		}
		if l.journey != nil {
			s.moveProcesses(l, all)
			continue
		}
		now := map[string]bool{}
		for _, p := range all {
			if !slices.Contains(l.pods, p.pod) {
				continue
			}
			role := p.role()
			now[role] = true
			switch role {
			case "sandbox":
				s.see(l, "sandbox made")
			case "virt-launcher":
				s.see(l, "launcher started")
				s.launcher(l, p)
			case "libvirtd":
				s.see(l, "libvirt daemon started")
			case "QEMU":
				if !slices.ContainsFunc(l.qemus, func(q process) bool { return q.pid == p.pid && q.began == p.began }) {
					l.qemus = append(l.qemus, p)
				}
				s.see(l, "QEMU started")
			}
		}
		if l.seen["QEMU started"] && !now["QEMU"] {
			s.see(l, "QEMU ended")
		}
		if l.seen["launcher started"] && !now["virt-launcher"] {
			s.see(l, "launcher ended")
		}
	}
	if s.late != nil && !s.hit {
		s.hit = s.inject(s.late)
	}
}

// launcher sees what there is of a launcher besides its process.
func (s *scene) launcher(l *life, p process) {
	s.netnsOf(l, p)
	if !l.seen["socket listens"] {
		_, err := os.Stat(filepath.Join(root(p.node), "var/lib/kubelet/pods", string(p.pod), "volumes/kubernetes.io~empty-dir", vmi.SocketsVolume, vmi.LauncherSocket))
		if err == nil {
			s.see(l, "socket listens")
		}
	}
	if !l.seen["network bound"] {
		devices, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/dev", p.pid))
		if strings.Contains(string(devices), "tap") {
			s.see(l, "network bound")
		}
	}
	if !l.seen["domain defined"] {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/root/run/kubevirt-private/libvirt/run/libvirt/qemu/run/*.xml", p.pid))
		if len(files) > 0 {
			s.see(l, "domain defined")
		}
	}
}

// netnsOf notes the network of the pod of a launcher.
func (s *scene) netnsOf(l *life, p process) {
	if l.netns[p.pod] == 0 {
		l.netns[p.pod] = inode(fmt.Sprintf("/proc/%d/ns/net", p.pid))
	}
}

func inode(path string) uint64 {
	var stat unix.Stat_t
	if unix.Stat(path, &stat) != nil {
		return 0
	}
	return stat.Ino
}

// traces of the sweep: what a user does, with the names of the VMIs.
var crashTraces = map[string]func(*scene){
	"vmi":   (*scene).traceVMI,
	"vm":    (*scene).traceVM,
	"guest": (*scene).traceGuest,
	"move":  (*scene).traceMove,
}

// traceVMI makes a VMI without a guest, and deletes it when it runs.
func (s *scene) traceVMI() {
	v := s.create(s.on(idle("vmi")))
	if s.endsGuest() {
		v = s.awaitEnd("vmi")
	} else {
		s.rest("running")
	}
	s.delete("vmi")
	s.awaitGone(v)
}

// traceGuest makes a VMI whose guest boots, and deletes it then.
func (s *scene) traceGuest() {
	v := s.create(s.on(guest("guest", cloudConfig("hostname: guest"))))
	if s.endsGuest() {
		v = s.awaitEnd("guest")
	} else {
		s.rest("booted")
		s.awaitFault()
		s.rest("booted")
		v = s.get("guest")
		eventually(s.t, soon, func() error { // the kubelet serves it
			text, err := s.readConsole(v)
			if n := strings.Count(text, ready); err == nil && n != 1 {
				err = fmt.Errorf("the guest booted %d times", n)
			}
			return err
		})
	}
	s.delete("guest")
	s.awaitGone(v)
}

// traceVM makes a VM with a claim, stops and starts it, and deletes it.
func (s *scene) traceVM() {
	s.claim("data", "16Mi", corev1.PersistentVolumeFilesystem, nil)
	v := s.on(idle("vm"))
	withClaim("data")(v)
	s.vmOf(v)
	s.rest("running")
	s.run("vm", vmi.RunHalted)
	s.rest("stopped")
	s.run("vm", vmi.RunAlways)
	s.rest("running again")
	require.NoError(s.t, world.vmis.VirtualMachines(s.name).Delete(s.t.Context(), "vm", metav1.DeleteOptions{}))
	s.rest("deleted")
	require.NoError(s.t, world.kube.CoreV1().PersistentVolumeClaims(s.name).Delete(s.t.Context(), "data", metav1.DeleteOptions{}))
}
