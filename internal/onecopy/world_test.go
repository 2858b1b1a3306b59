package onecopy

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

const (
	sourcePod    = types.UID("p1")
	targetPod    = types.UID("p2")
	migrationUID = types.UID("m1")
	// forNode is how long a node may not report before Kubernetes says so.
	forNode = 40 * time.Second
)

var config = pod.Config{Launcher: pod.Launcher{Image: "example/virt-launcher:v1"}}

// world is a cluster in which one guest moves from n1 to n2.
type world struct {
	draws  []byte
	faults int // that may still happen
	due    []due
	lines  []string

	now        time.Time
	version    int
	incarn     int
	api        objects
	targetMade bool
	control    *controller
	n1, n2     *node
	late       []*call             // of processes that are gone
	since      map[*node]time.Time // when a node stopped to report

	killed bool  // a fault, or the user, has ended a copy of the guest
	failed error // what the oracle has found
}

// draw is the next choice among n. It is 0 at the end of the walk.
func (w *world) draw(n int) int {
	if len(w.draws) == 0 {
		return 0
	}
	b := w.draws[0]
	w.draws = w.draws[1:]
	return int(b) % n
}

// chance says, once in n times, that a fault happens.
func (w *world) chance(n int) bool {
	if w.faults == 0 || len(w.draws) == 0 {
		return false
	}
	if n > 2 {
		if w.draw(n) != 1 {
			return false
		}
		w.faults--
		return true
	}
	return w.draw(2) == 1
}

func (w *world) note(format string, args ...any) {
	w.lines = append(w.lines, w.now.Format("04:05 ")+fmt.Sprintf(format, args...))
}

func (w *world) wrong(format string, args ...any) {
	if w.failed == nil {
		w.failed = fmt.Errorf(format, args...)
		w.note("WRONG: %v", w.failed)
	}
}

func (w *world) nextIncarnation() int { w.incarn++; return w.incarn }

func (w *world) nodes() []*node { return []*node{w.n1, w.n2} }

func (w *world) named(name string) *node {
	if name == w.n2.name {
		return w.n2
	}
	return w.n1
}

// newWorld has a guest that runs on n1, and a migration of it that was just made.
func newWorld(draws []byte) *world {
	w := &world{draws: draws, now: time.Date(2030, 1, 2, 3, 0, 0, 0, time.UTC), since: map[*node]time.Time{}}
	w.faults = w.draw(5)
	v := vmitest.New(vmitest.WithName("guest"), vmitest.WithGracePeriod(0))
	v.Finalizers, v.CreationTimestamp = []string{vmi.Finalizer}, metav1.NewTime(w.now.Add(-time.Hour))
	v.Labels = map[string]string{vmi.NodeNameLabel: "n1"}
	v.Status.Phase, v.Status.NodeName, v.Status.ActivePods = vmi.PhaseRunning, "n1", map[types.UID]string{sourcePod: "n1"}
	v.ResourceVersion = w.next()
	p, err := pod.Render(v, config)
	if err != nil {
		panic(err)
	}
	p.UID, p.Spec.NodeName = sourcePod, "n1"
	m := &vmi.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: "move", UID: migrationUID,
		CreationTimestamp: metav1.NewTime(w.now), Finalizers: []string{vmi.MigrationFinalizer}, ResourceVersion: w.next()}}
	m.Spec.VMIName = v.Name
	w.api = objects{vmi: v, move: m, pods: map[types.UID]*corev1.Pod{sourcePod: p}, nodes: map[string]*corev1.Node{}}
	w.n1, w.n2 = &node{world: w, name: "n1", up: true}, &node{world: w, name: "n2", up: true}
	w.n1.peer, w.n2.peer = w.n2, w.n1
	w.n1.pod = &launched{world: w, uid: sourcePod, alive: true, left: true, domain: launcher.Running, desired: launcher.Desired{Run: true}}
	for _, n := range w.nodes() {
		w.api.nodes[n.name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.now.Add(-time.Hour))}}}}
		n.restart()
	}
	w.ready(sourcePod)
	w.control = &controller{world: w, seen: w.api.read()}
	return w
}

// ready makes a pod one that runs.
func (w *world) ready(uid types.UID) {
	w.editPod(uid, func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: vmi.ComputeContainer, Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(w.now)}}}}
		for _, t := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
			setCondition(p, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.now)})
		}
	})
}

// kubelet does the next thing for the pods of a node, and for the one that may be bound to it.
func (n *node) kubelet() {
	if !n.up || n.cut {
		return
	}
	if p := n.api.pods[targetPod]; n == n.n2 && p != nil && p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodPending && !isFenced(n.api.nodes[n.name]) {
		switch {
		case p.Spec.NodeName == "":
			n.editPod(targetPod, func(p *corev1.Pod) { p.Spec.NodeName = n.name })
			return
		case n.pod == nil:
			n.pod = &launched{world: n.world, uid: targetPod, alive: true, left: true}
			n.ready(targetPod)
			return
		}
	}
	l := n.pod
	if l == nil || !l.left {
		return
	}
	p := n.api.pods[l.uid]
	switch leaves := p == nil || p.DeletionTimestamp != nil; {
	case leaves && l.alive:
		if l.desired.StopBy.IsZero() {
			n.killed = n.killed || !l.standsBy()
			l.desired.Terminated = true
			l.stop(n.now)
			return
		}
		if n.now.After(l.desired.StopBy.Add(30 * time.Second)) {
			l.die()
		}
	case leaves:
		l.left = false
		delete(n.api.pods, l.uid)
	case !l.alive && p.Status.Phase == corev1.PodRunning:
		n.editPod(l.uid, func(p *corev1.Pod) {
			t := &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error", FinishedAt: metav1.NewTime(n.now)}
			p.Status.Phase = corev1.PodFailed
			if l.end != nil {
				t.ExitCode, t.Message = 1, l.end.Termination()
				if !l.end.Reason.Failed() {
					t.ExitCode, t.Reason, p.Status.Phase = 0, "Completed", corev1.PodSucceeded
				}
			}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: vmi.ComputeContainer, State: corev1.ContainerState{Terminated: t}}}
		})
	}
}

// standsBy says that the pod has no copy of the guest that could run yet.
func (p *launched) standsBy() bool {
	return p.domain == launcher.Absent && (p.to == nil || !p.to.whole)
}

// cluster does what the other controllers of a cluster do.
func (w *world) cluster() {
	for _, n := range w.nodes() {
		is, silent := w.api.nodes[n.name], !n.up || n.cut
		switch {
		case !silent:
			delete(w.since, n)
			w.nodeReady(n, corev1.ConditionTrue)
		case w.since[n].IsZero():
			w.since[n] = w.now
		case w.now.Sub(w.since[n]) > forNode:
			w.nodeReady(n, corev1.ConditionUnknown)
		}
		for uid, p := range w.api.pods {
			if isFenced(is) && p.Spec.NodeName == n.name {
				w.deletePod(uid, true)
			}
		}
	}
	if w.api.vmi == nil {
		for uid := range w.api.pods {
			w.deletePod(uid, false)
		}
	}
}

func (w *world) nodeReady(n *node, s corev1.ConditionStatus) {
	is := w.api.nodes[n.name]
	if is.Status.Conditions[0].Status != s {
		is = is.DeepCopy()
		is.Status.Conditions[0].Status, is.Status.Conditions[0].LastTransitionTime = s, metav1.NewTime(w.now)
		w.api.nodes[n.name] = is
	}
}

// breakStreams ends the connections between the QEMUs before all has been sent, or after.
func (w *world) breakStreams() {
	if w.n1 == nil || w.n1.pod == nil {
		return
	}
	if d := w.n1.pod.from; d != nil && d.performed && !d.over {
		d.broken = true
	}
}

// send ends the sending of the guest, if one is under way.
func (w *world) send() {
	s, t := w.n1.pod, w.n2.pod
	d := s.from
	if !s.alive || s.domain != launcher.Running || d == nil || !d.performed || d.over {
		return
	}
	arrives := t != nil && t.alive && t.to != nil && t.to.waits && t.to.streams
	joined := w.n1.runner != nil && w.n1.runner.performing && !d.broken
	sent := joined && arrives && !w.chance(8)
	if sent && w.chance(16) { // the rest is in buffers that are lost
		arrives = false
	}
	if !sent && arrives && w.chance(8) { // all was sent, and the connections break then
		sent = true
	}
	w.note("the sending ends: sent %v, arrived %v", sent, sent && arrives)
	s.sendingEnds(sent)
	if t != nil && t.to != nil && t.to.streams {
		t.to.streams, t.to.whole, t.to.late = false, sent && arrives, w.now.Add(finishWait)
		if !t.to.whole && !t.to.discarded {
			t.to.waits = false
			t.discard("its QEMU has ended")
		}
	}
}

// resumes lets the guest run at its source again, after everything was sent.
func (p *launched) resumes() {
	if p.domain != launcher.Paused {
		return
	}
	if t := p.n2.pod; t != nil && t.alive && (t.domain == launcher.Running || t.domain == launcher.Paused || t.to != nil && t.to.waits) {
		p.wrong("the guest is resumed at its source and may run at the target")
	}
	p.domain = launcher.Running
}

// runs says that the guest runs at the target from now on.
func (p *launched) runs() {
	if s := p.n1.pod; s.alive && s.domain == launcher.Running {
		p.wrong("the guest runs at the target and at its source")
	}
}

// watch is the oracle of every moment.
func (w *world) watch() {
	s, t := w.n1.pod, w.n2.pod
	runs := func(p *launched) bool { return p != nil && p.alive && p.domain == launcher.Running }
	if runs(s) && runs(t) {
		w.wrong("two copies of the guest run")
	}
	copies := 0
	for _, p := range []*launched{s, t} {
		if p != nil && p.alive && (p.domain == launcher.Running || p.domain == launcher.Paused || p.to != nil && p.to.waits && p.to.whole) {
			copies++
		}
	}
	if copies == 0 && !w.killed {
		w.wrong("no copy of the guest is left, and nothing has ended one")
	}
	if s.stage != nil && s.stage.Stage == protocol.MigrationSent && runs(s) {
		w.wrong("the guest runs at its source, of which everything was sent")
	}
}

// settled is the oracle of the end: why the states are not true, or what is left.
func (w *world) settled() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	v, m := w.api.vmi, w.api.move
	if m != nil && (!m.Status.Phase.Final() || len(m.Finalizers) > 0) {
		wrong("the migration is %s with finalizers %q", m.Status.Phase, m.Finalizers)
	}
	var at *node
	for _, n := range w.nodes() {
		l := n.pod
		if l == nil || !l.alive {
			continue
		}
		if at != nil {
			wrong("launchers run on both nodes")
		}
		if at = n; l.domain != launcher.Running {
			wrong("the guest on %s is %q", n.name, l.domain)
		}
	}
	switch {
	case at == nil && !w.killed:
		wrong("the guest does not run")
		return errors.Join(errs...)
	case at == nil && v != nil && !v.Status.Phase.Final():
		wrong("no guest runs, and the VMI is %s on %s: %+v", v.Status.Phase, v.Status.NodeName, v.Status.Conditions)
		return errors.Join(errs...)
	case at == nil:
		return errors.Join(errs...)
	case v == nil || v.Status.Phase != vmi.PhaseRunning:
		wrong("the guest runs on %s, and the VMI is not Running: %+v", at.name, v)
		return errors.Join(errs...)
	}
	s := v.Status.MigrationState
	if v.Status.NodeName != at.name || v.Status.ActivePods[at.pod.uid] != at.name || len(v.Status.ActivePods) != 1 && (s == nil || !s.Failed) {
		wrong("the guest runs on %s, and the VMI on %s, in %v", at.name, v.Status.NodeName, v.Status.ActivePods)
	}
	if v.Labels[vmi.NodeNameLabel] != at.name || v.Labels[vmi.MigrationTargetNodeLabel] != "" {
		wrong("the labels are %v", v.Labels)
	}
	if c := v.Status.Condition(vmi.ConditionPaused); c != nil {
		wrong("the guest runs, and the VMI is paused: %s", c.Reason)
	}
	if s != nil && (!s.Completed || s.Failed != (at == w.n1)) {
		wrong("the guest runs on %s, and the state of its migration is %+v", at.name, s)
	}
	if m != nil && (m.Status.Phase == vmi.MigrationPhaseSucceeded) != (at == w.n2) {
		wrong("the guest runs on %s, and its migration is %s", at.name, m.Status.Phase)
	}
	if c := v.Status.Condition(vmi.ConditionReady); c == nil || c.Status != corev1.ConditionTrue {
		wrong("the guest runs, and the VMI is not ready: %+v", c)
	}
	return errors.Join(errs...)
}

// text is the beginning of what happened: the end repeats itself.
func (w *world) text() string { return strings.Join(w.lines[:min(len(w.lines), 160)], "\n") }
