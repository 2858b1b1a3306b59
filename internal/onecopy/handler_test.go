package onecopy

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// The times of handler/controller.
const (
	prepareTimeout = time.Minute
	finishTimeout  = 15 * time.Second
	mostDismissals = 3
)

// node is a node with its handler. What that decides is handler.Decide and handler.Next.
type node struct {
	*world
	name   string
	up     bool // its processes run
	cut    bool // it is cut off from the API server and from all other nodes
	peer   *node
	pod    *launched
	incarn int // which of its handlers this is: the certificate

	seen     objects
	sessions map[types.UID]*session
	accepted int // the handler of the source that was accepted for the migration; 0: none
	runner   *runner
	unsure   bool // of the guard: whether all guests here are those of VMIs
}

// session is that of handler/controller.
type session struct {
	handler.Session
	pod types.UID
}

// restart makes another handler take the place of this one.
func (n *node) restart() {
	n.incarn = n.nextIncarnation()
	n.sessions, n.accepted, n.runner, n.unsure = map[types.UID]*session{}, 0, nil, true
	n.seen = n.api.read()
	n.breakStreams()
}

// launcher is the one in the pod, if it answers.
func (n *node) launcher(uid types.UID) *launched {
	if n.pod != nil && n.pod.uid == uid && n.pod.alive {
		return n.pod
	}
	return nil
}

// instance is the VMI, if it is on the node or moves there.
func (n *node) instance() *vmi.VirtualMachineInstance {
	v := n.seen.vmi
	if v == nil || v.Status.NodeName != n.name && (v.Status.MigrationState == nil || v.Status.MigrationState.TargetNode != n.name) {
		return nil
	}
	return v
}

// observed is what is decided on for one of the pods.
func (n *node) observed(p handler.Pod, s *session) handler.Observed {
	o := handler.Observed{Instance: n.instance(), Node: n.name, Pod: p, Now: n.now}
	if s != nil {
		o.Session = &s.Session
		if r := n.runner; r != nil {
			o.Session.Move = handler.Move{UID: migrationUID, Peer: r.start.Address, Finding: r.finding, Ended: r.over}
		}
	}
	o.NothingLeft = p.UID != "" && (n.pod == nil || n.pod.uid != p.UID || !n.pod.left)
	return o
}

// reconcile does what is to be done for the VMI.
func (n *node) reconcile() {
	pods := handler.Pods(n.instance(), n.name)
	for uid, s := range n.sessions {
		if len(pods) == 0 || pods[0].UID != uid {
			n.act(s, n.observed(handler.Pod{}, s))
		}
	}
	for _, p := range pods {
		n.act(n.sessions[p.UID], n.observed(p, n.sessions[p.UID]))
	}
}

func (n *node) act(s *session, o handler.Observed) {
	p := handler.Decide(o)
	if v := o.Instance; p.Status != nil && !equality.Semantic.DeepEqual(&v.Status, p.Status) {
		_, err := n.writeVMI(n, &n.seen, v, func(v *vmi.VirtualMachineInstance) { v.Status = *p.Status.DeepCopy() })
		n.note("the handler of %s writes the status: %s %+v: %v", n.name, p.Status.Phase, p.Status.MigrationState, err)
		if err != nil && p.Status.Phase.Final() {
			return
		}
	}
	for _, a := range p.Actions {
		switch a := a.(type) {
		case handler.Connect:
			n.sessions[a.PodUID] = &session{pod: a.PodUID, Session: handler.Session{Began: n.now, Since: n.now}}
		case handler.Disconnect:
			delete(n.sessions, s.pod)
			if runs := n.runner != nil && !n.runner.over; !runs && (s.State == nil || !s.Sent.IsZero()) {
				n.unsure = true
			}
			if l := n.launcher(s.pod); a.Destroy && l != nil {
				l.stop(n.now)
			}
		case handler.Bind:
			s.Network = &handler.Network{}
		case handler.Put:
			l := n.launcher(s.pod)
			if l == nil || n.chance(8) {
				return
			}
			l.put(a.Desired)
			s.Put, s.Generation = &a.Desired, a.Generation
		}
	}
}

// look brings the state of the launcher, or that it does not answer.
func (n *node) look() {
	for uid, s := range n.sessions {
		l := n.launcher(uid)
		if l == nil {
			if n.pod != nil && n.pod.uid == uid && n.pod.end != nil && s.State != nil {
				s.State = &protocol.State{Phase: protocol.Ended, End: n.pod.end, Movable: true, Migration: n.pod.stage}
				continue
			}
			if s.State == nil || s.State.Phase != protocol.Ended {
				s.Since, s.State, s.Network, s.Put = n.now, nil, nil, nil
				s.Finding = &vmi.Finding{Reason: vmi.ReasonLauncherUnresponsive, Message: "the launcher does not answer"}
			}
			continue
		}
		state := l.state()
		state = state.Sanitized()
		if s.State == nil {
			s.Finding = nil
		}
		s.State, s.Generation = &state, max(s.Generation, state.Generation)
		switch m := state.Migration; {
		case m == nil || m.Stage != protocol.MigrationSent:
			s.Sent = time.Time{}
		case s.Sent.IsZero():
			s.Sent = n.now
		}
	}
}

// guard ends the guests here that are those of no VMI.
func (n *node) guard() {
	l := n.pod
	if !n.unsure || n.cut {
		return
	}
	if arrives, answered := n.reach(n); arrives != nil || answered != nil {
		return
	}
	n.unsure = false
	if l == nil || !l.alive {
		return
	}
	if phase := l.state().Phase; phase == protocol.Waiting || phase == protocol.Ended {
		return
	}
	for _, p := range handler.Pods(n.api.vmi, n.name) {
		if p.UID == l.uid {
			return
		}
	}
	n.note("the guard of %s ends the guest", n.name)
	l.stop(n.now)
}

// accept is a migration-accept.
func (n *node) accept(pod types.UID, certificate int) error {
	s, v := n.sessions[pod], n.instance()
	switch {
	case v == nil || s == nil, v.Status.MigrationState == nil || v.Status.MigrationState.MigrationUID != migrationUID:
		return refused(protocol.ReasonUnavailable)
	case (s.State == nil || s.State.Phase == protocol.Ended && (s.State.Migration == nil || s.State.Migration.Stage != protocol.MigrationArrived)) && (n.pod == nil || !n.pod.left):
		return refused(protocol.ReasonNotMoved)
	case s.State == nil:
		return refused(protocol.ReasonUnavailable)
	case s.State.Migration != nil:
	case s.Network == nil, s.Put == nil || s.Put.Role != vmi.RoleTarget || s.Put.Stop != nil || s.State.Phase != protocol.Waiting:
		return refused(protocol.ReasonUnavailable)
	}
	n.accepted = certificate
	return nil
}

// begin is a migration-start.
func (n *node) begin(start protocol.MigrationStart, certificate int) error {
	s, v := n.sessions[sourcePod], n.instance()
	switch {
	case !start.Over && start.Address == "":
		return refused(protocol.ReasonMalformed)
	case v == nil || s == nil:
		return refused(protocol.ReasonNotFound)
	case v.Status.MigrationState == nil || v.Status.MigrationState.MigrationUID != migrationUID:
		return refused(protocol.ReasonUnavailable)
	case v.DeletionTimestamp != nil && s.Sent.IsZero():
		return refused("Stopping")
	}
	switch r := n.runner; {
	case r == nil || r.over:
		n.runner = &runner{node: n, began: n.now, start: start, certificate: certificate, known: handler.Moving{UID: migrationUID}}
		if r != nil {
			n.runner.finding = r.finding
		}
	default:
		r.start, r.certificate = start, certificate
	}
	return nil
}

// abort is a migration-abort.
func (n *node) abort() error {
	if n.instance() == nil || n.sessions[sourcePod] == nil {
		return refused(protocol.ReasonUnavailable)
	}
	if n.runner != nil {
		n.runner.cease(vmi.Finding{Message: "Live migration has been aborted"})
	}
	l := n.launcher(sourcePod)
	if l == nil {
		return refused(protocol.ReasonUnavailable)
	}
	if err := l.abort(); reasonOf(err) != protocol.ReasonNotFound {
		return err
	}
	return nil
}

// runner is that of handler/controller.
type runner struct {
	*node
	began       time.Time
	start       protocol.MigrationStart
	certificate int // of the peer
	known       handler.Moving
	looked      bool
	finding     *vmi.Finding
	performing  bool // waits for the answer of a perform
	dismissed   int
	ended       time.Time // when the launcher was not there any more
	over        bool
}

func (r *runner) cease(f vmi.Finding) {
	if r.finding == nil {
		r.finding = &f
	}
}

// step does the next step.
func (r *runner) step() {
	if r.over {
		return
	}
	l := r.launcher(sourcePod)
	if r.performing {
		r.performs(l)
		return
	}
	r.known.State = nil
	switch {
	case l != nil:
		state := l.state()
		r.known.State = &state
		if !r.looked {
			r.looked, r.known.Asked = true, state.Migration != nil
		}
	case r.pod == nil || !r.pod.left || r.sessions[sourcePod] == nil:
		r.known.State = &protocol.State{Phase: protocol.Ended}
	}
	switch s := r.known.State; {
	case s == nil || s.Phase != protocol.Ended:
	case r.ended.IsZero():
		r.ended = r.now
	case r.known.Moved == nil && r.now.Sub(r.ended) > finishTimeout:
		r.known.Moved = new(false)
	}
	r.known.GivenUp = r.finding != nil
	if r.start.Over && r.known.Moved == nil {
		r.known.Moved = new(false)
	}
	step := handler.Next(r.known)
	if step != handler.StepWait {
		r.note("the runner: %s", step)
	}
	switch step {
	case handler.StepDone:
		r.over = true
	case handler.StepBegin:
		if r.judged(step, r.own(func() error { return l.begin() })) {
			r.known.Begun = true
		}
	case handler.StepPrepare:
		r.known.Asked = true
		if r.judged(step, r.ask(func(t *launched) error { return t.prepare() })) {
			r.known.Prepared = true
		}
	case handler.StepPerform:
		var over bool
		err := r.own(func() (err error) { over, err = l.perform(); return err })
		switch {
		case err == nil && !over:
			r.performing = true
			if t := r.target(); t != nil && t.to != nil && t.to.waits {
				t.to.streams, t.to.late = true, time.Time{}
			}
		case r.judged(step, err):
			r.known.Performed = true
		}
	case handler.StepFinish:
		r.finish()
	case handler.StepConfirm:
		if moved := *r.known.Moved; r.own(func() error { return l.confirm(moved) }) == nil {
			r.known.Confirmed = true
		}
	case handler.StepAbort:
		_ = r.own(func() error { return l.abort() })
	case handler.StepDismiss:
		r.dismissed++
		err := r.ask(func(t *launched) error { return t.finish(false) })
		r.known.Dismissed = err == nil || reasonOf(err) == protocol.ReasonNotMoved || r.dismissed >= mostDismissals
	}
}

// performs waits for the end of the sending.
func (r *runner) performs(l *launched) {
	switch {
	case l == nil:
		r.performing = false
	case l.from.over:
		r.performing = false
		if err := r.own(func() (err error) { _, err = l.perform(); return err }); r.judged(handler.StepPerform, err) {
			r.known.Performed = true
		}
	}
}

// finish asks for the outcome, also the API server.
func (r *runner) finish() {
	err := r.ask(func(t *launched) error { return t.finish(true) })
	switch {
	case err == nil:
		r.known.Moved = new(true)
	case reasonOf(err) == protocol.ReasonNotMoved:
		r.cease(vmi.Finding{Reason: protocol.ReasonNotMoved})
		r.known.Moved = new(false)
	default:
		arrives, answered := r.reach(r.node)
		if v := r.api.vmi; arrives == nil && answered == nil && (v == nil || v.Status.NodeName != r.name) {
			r.known.Moved = new(true)
		}
	}
}

// own makes a call to the own launcher.
func (r *runner) own(call func() error) error {
	if r.launcher(sourcePod) == nil {
		return errAway
	}
	return r.called(call)
}

// target is the launcher of the target, if the handler there lets this one ask it.
func (r *runner) target() *launched {
	p := r.peer
	if !p.up || p.cut || r.cut || p.incarn != r.certificate || p.accepted != r.incarn || r.start.Pod != targetPod || r.start.Address == "" {
		return nil
	}
	return p.launcher(targetPod)
}

// ask makes a call to the launcher of the target.
func (r *runner) ask(call func(*launched) error) error {
	t := r.target()
	if t == nil {
		return errAway
	}
	return r.called(func() error { return call(t) })
}

// called makes a call that may not arrive, and whose answer may be lost.
func (w *world) called(call func() error) error {
	switch {
	case !w.chance(8):
		return atWire(call())
	case w.chance(2):
		w.note("a call does not arrive")
		return errAway
	}
	w.note("the answer to a call is lost")
	_ = call()
	return errLost
}

// atWire is what a peer gets of an error.
func atWire(err error) error {
	if err != nil && reasonOf(err) == "" {
		return refused(protocol.ReasonUnavailable)
	}
	return err
}

func reasonOf(err error) string {
	if r := (*vmi.Refusal)(nil); errors.As(err, &r) {
		return r.Reason
	}
	return ""
}

// judged gives the migration up if the step has failed for good, or has had its time.
func (r *runner) judged(step handler.Step, err error) bool {
	if err == nil {
		return true
	}
	switch reason := reasonOf(err); {
	case reason != "" && !step.Retryable(vmi.Finding{Reason: reason}):
		r.cease(vmi.Finding{Reason: reason, Message: err.Error()})
	case r.now.Sub(r.began) > prepareTimeout && step != handler.StepPerform:
		r.cease(vmi.Finding{Reason: "PrepareTimeout"})
	}
	return false
}
