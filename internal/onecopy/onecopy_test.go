package onecopy

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

var (
	walks = flag.Int("walks", 1000, "how many walks")
	seed  = flag.Uint64("seed", 1, "begins the walks")
)

// steps are what may happen next without a fault. The first does a bit of everything.
func (w *world) steps() []func() {
	c, n1, n2 := w.control, w.n1, w.n2
	return []func(){
		w.round, w.round, w.round, w.round, w.round, w.round,
		c.moves, c.lives, w.deliver, w.answer, w.deliver, w.answer,
		func() { c.seen = w.api.read() },
		func() { n1.sync() }, func() { n2.sync() },
		func() { n1.running(n1.look) }, func() { n2.running(n2.look) },
		func() { n1.running(n1.reconcile) }, func() { n2.running(n2.reconcile) },
		func() { n1.running(n1.guard) }, func() { n2.running(n2.guard) },
		w.run, w.run, w.run, w.run, w.send,
		n1.kubelet, n2.kubelet, w.cluster, w.acts,
		func() { w.pass(time.Second) }, func() { w.pass(5 * time.Second) }, func() { w.pass(15 * time.Second) }, func() { w.pass(time.Minute) },
	}
}

// sync brings what the API server has to the handler.
func (n *node) sync() {
	if n.up && !n.cut {
		n.seen = n.api.read()
	}
}

// running does it if the processes of the node run.
func (n *node) running(do func()) {
	if n.up {
		do()
	}
}

// run does the next step of the handler of the source.
func (w *world) run() {
	if r := w.n1.runner; r != nil && w.n1.up {
		r.step()
	}
}

func (w *world) acts() {
	for _, n := range w.nodes() {
		if n.pod != nil && n.up {
			n.pod.act()
		}
	}
}

func (w *world) pass(d time.Duration) { w.now = w.now.Add(d) }

// deliver lets a call arrive, of this virt-controller or the one before.
func (w *world) deliver() {
	for _, k := range w.control.inFlight {
		if !k.arrived {
			k.deliver()
			return
		}
	}
	if len(w.late) > 0 {
		k := w.late[0]
		w.late = w.late[1:]
		if !k.arrived {
			k.deliver()
		}
	}
}

func (w *world) answer() {
	for _, k := range w.control.inFlight {
		if k.arrived {
			w.control.answer(k)
			return
		}
	}
}

// round does a bit of everything.
func (w *world) round() {
	w.control.seen = w.api.read()
	w.control.moves()
	w.control.seen = w.api.read()
	w.control.lives()
	w.deliver()
	w.answer()
	for _, n := range w.nodes() {
		n.sync()
		n.running(n.look)
		n.running(n.reconcile)
		n.running(n.guard)
		n.kubelet()
	}
	for range 3 {
		w.run()
	}
	w.acts()
	w.cluster()
}

// due is a fault that happens so many steps after a launcher has reached the stage.
type due struct {
	at    protocol.MigrationStage
	after int
}

var stages = []protocol.MigrationStage{
	protocol.MigrationBegins, protocol.MigrationReceives, protocol.MigrationSends, protocol.MigrationSent, protocol.MigrationSent,
	protocol.MigrationArrived, protocol.MigrationDiscarded, protocol.MigrationStays,
}

// isDue says that a fault is due now.
func (w *world) isDue() bool {
	for i := range w.due {
		for _, n := range w.nodes() {
			if d := &w.due[i]; n.pod != nil && n.pod.stage != nil && n.pod.stage.Stage == d.at {
				if d.after--; d.after < 0 {
					w.due = slices.Delete(w.due, i, i+1)
					return true
				}
				break
			}
		}
	}
	return false
}

// fault is one of the faults that end or cut something.
func (w *world) fault() {
	w.faults = max(w.faults-1, 0)
	n := w.nodes()[w.draw(2)]
	switch w.draw(12) {
	case 0, 1:
		w.note("FAULT virt-controller is killed")
		w.control.restart()
	case 2, 3:
		if n.up {
			w.note("FAULT the handler of %s is killed", n.name)
			n.restart()
		}
	case 4:
		if l := n.pod; l != nil && l.alive {
			w.note("FAULT the launcher on %s is killed", n.name)
			w.killed = w.killed || !l.standsBy()
			l.die()
			w.breakStreams()
		}
	case 5:
		if l := n.pod; l != nil && l.alive {
			w.note("FAULT QEMU on %s is killed", n.name)
			w.killed = w.killed || !l.standsBy()
			w.breakStreams()
			l.gone(launcher.Exit{Cause: launcher.Crashed})
			if l.to != nil && l.to.waits && !l.to.finished {
				l.discard("QEMU has ended")
			}
			if d := l.from; d != nil && d.performed && !d.over {
				l.sendingEnds(false)
			}
		}
	case 6:
		if l := n.pod; l != nil && l.alive {
			w.note("FAULT the libvirt daemon on %s is killed", n.name)
			w.breakStreams()
			if d := l.from; d != nil && d.performed && !d.over {
				l.sendingEnds(false)
			}
			if l.to != nil && l.to.waits && !l.to.finished {
				w.killed = w.killed || !l.standsBy()
				l.discard("the daemon has ended")
			}
		}
	case 7:
		if n.up {
			w.note("FAULT the node %s is down", n.name)
			n.up = false
			if l := n.pod; l != nil {
				w.killed = w.killed || l.alive && !l.standsBy()
				l.die()
			}
			w.breakStreams()
		}
	case 8:
		w.note("FAULT the node %s is cut off: %v", n.name, !n.cut)
		n.cut = !n.cut
		w.breakStreams()
	case 9:
		if l := n.pod; l != nil && w.api.pods[l.uid] != nil {
			w.note("FAULT the pod on %s is deleted by force", n.name)
			w.deletePod(l.uid, true)
		}
	case 10:
		if m := w.api.move; m != nil && m.DeletionTimestamp == nil {
			w.note("FAULT the migration is deleted")
			m = m.DeepCopy()
			m.DeletionTimestamp, m.ResourceVersion = &metav1.Time{Time: w.now}, w.next()
			w.api.move = m
			if len(m.Finalizers) == 0 {
				w.api.move = nil
			}
		}
	case 11:
		switch v := w.api.vmi; {
		case v == nil || v.DeletionTimestamp != nil:
		case w.draw(2) == 0:
			w.note("FAULT the VMI is deleted")
			w.killed = true
			v = v.DeepCopy()
			v.DeletionTimestamp, v.ResourceVersion = &metav1.Time{Time: w.now}, w.next()
			w.api.vmi = v
		default:
			if l := n.pod; l != nil && l.alive && l.domain == launcher.Running {
				w.note("FAULT the guest on %s powers off", n.name)
				w.killed = true
				l.gone(launcher.Exit{Cause: launcher.PoweredOff})
				if d := l.from; d != nil && d.performed && !d.over {
					l.sendingEnds(false)
				}
			}
		}
	}
}

// heal ends what lasts: a node that is cut off is reached again, and one that is down comes
// back, or is fenced.
func (w *world) heal() {
	for _, n := range w.nodes() {
		n.cut = false
		switch {
		case n.up:
		case w.draw(2) == 0:
			w.note("the node %s comes back", n.name)
			n.up = true
			n.restart()
		default:
			w.note("the node %s is fenced", n.name)
			w.nodeReady(n, corev1.ConditionUnknown)
			is := w.api.nodes[n.name].DeepCopy()
			is.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
			w.api.nodes[n.name] = is
		}
	}
}

// walk plays the draws, and then lets everything come to its end.
func walk(draws []byte) (*world, error) {
	w := newWorld(draws)
	for range w.draw(3) {
		w.due = append(w.due, due{stages[w.draw(len(stages))], w.draw(4)})
	}
	for len(w.draws) > 0 && w.failed == nil {
		if w.isDue() || w.faults > 0 && w.draw(32) == 1 {
			w.fault()
		} else {
			all := w.steps()
			all[w.draw(len(all))]()
		}
		w.watch()
	}
	w.heal()
	w.faults = 0
	w.note("everything heals")
	still := 0
	var err error
	for i := 0; i < 400 && w.failed == nil && still < 20; i++ {
		w.round()
		w.send()
		for len(w.late) > 0 {
			w.deliver()
		}
		w.watch()
		w.pass(time.Second)
		if i > 60 {
			w.pass(4 * time.Second)
		}
		if err = w.settled(); err == nil {
			still++
		} else {
			still = 0
		}
	}
	if w.failed != nil {
		err = w.failed
	}
	return w, err
}

// random are the draws of a walk.
func random(seed, number uint64) []byte {
	r := rand.New(rand.NewPCG(seed, number))
	draws := make([]byte, 60+r.IntN(240))
	for i := range draws {
		draws[i] = byte(r.Uint32())
	}
	return draws
}

func TestAGuestThatMovesRunsOnceWhateverFails(t *testing.T) {
	t.Parallel()
	moved, stayed, lost := 0, 0, 0
	for i := range *walks {
		w, err := walk(random(*seed, uint64(i)))
		require.NoError(t, err, "walk %d of seed %d:\n%s", i, *seed, w.text())
		switch v := w.api.vmi; {
		case v == nil || v.Status.Phase != vmi.PhaseRunning:
			lost++
		case v.Status.NodeName == "n2":
			moved++
		default:
			stayed++
		}
	}
	t.Logf("of %d guests %d moved, %d stayed, and %d were ended", *walks, moved, stayed, lost)
	require.NotZero(t, moved)
	require.NotZero(t, stayed)
	require.NotZero(t, lost)
}

func TestAGuestWhoseSourceDiesAfterItWasSentRunsAtTheTarget(t *testing.T) {
	t.Parallel()
	w := newWorld(nil)
	for range 60 {
		w.round()
		w.send()
		w.pass(time.Second)
		if s := w.n1.pod.stage; s != nil && s.Stage == protocol.MigrationSent {
			break
		}
	}
	w.run() // everything is known to be sent
	require.True(t, w.n1.runner.known.Performed)
	w.n1.pod.die()
	for range 60 {
		w.round()
		w.pass(time.Second)
		w.watch()
	}
	require.NoError(t, w.failed)
	require.NoError(t, w.settled(), w.text())
	require.Equal(t, "n2", w.api.vmi.Status.NodeName)
}

func FuzzWalk(f *testing.F) {
	f.Add([]byte{})
	// Walks that have found something.
	f.Add(random(1, 1184))  // a guest that was sent stood still when its target was deleted by force
	f.Add(random(2, 52))    // the guest was to run in a pod that was to end
	f.Add(random(3, 3784))  // it was sent though the abort was reported as done
	f.Add(random(11, 5428)) // it was sent, and a handler that was just started knew nothing of that
	f.Fuzz(func(t *testing.T, draws []byte) {
		w, err := walk(draws[:min(len(draws), 400)])
		require.NoError(t, err, w.text())
	})
}
