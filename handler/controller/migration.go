package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

const (
	// acceptTimeout is how long a launcher may take until it waits for its guest, before the
	// caller gets the reason why it does not. virt-controller asks again.
	acceptTimeout = 20 * time.Second
	// acceptPeriod is the time between two looks whether it does.
	acceptPeriod = 50 * time.Millisecond
	// cacheLag is how much the cache of VMIs may be behind virt-controller.
	cacheLag = 3 * time.Second
	// mostAccepted is how many migrations to the node are known at a time.
	mostAccepted = 64
)

// migrations are those that the handler takes part in. It is lost with the process:
// virt-controller repeats its calls to the next one. The zero value is ready to use.
type migrations struct {
	mu       sync.Mutex
	accepted map[types.UID]acceptance // by the migration
	runners  map[types.UID]*runner    // by the pod of the source
	holds    map[types.UID]func()     // ends what announces a guest, by its pod
	settling bool
	running  sync.WaitGroup
}

// acceptance is which handler may send what to where.
type acceptance struct {
	to          protocol.Target
	certificate string
	reported    handler.Move // what it has said of the migration at its end
}

// AdmitPeer returns whether the handler whose certificate has this hash was accepted for the
// migration, the VMI and the pod of the path. It may be called from any goroutine.
func (c *Controller) AdmitPeer(p protocol.Path, certificate string) bool {
	c.migrations.mu.Lock()
	defer c.migrations.mu.Unlock()
	a, ok := c.migrations.accepted[p.Migration]
	return ok && certificate == a.certificate && p.Target == a.to
}

// Settle returns when no migration from or to the node is under way, or when ctx ends. No
// other one begins from then on.
func (c *Controller) Settle(ctx context.Context) {
	c.migrations.mu.Lock()
	c.migrations.settling = true
	c.migrations.mu.Unlock()
	for c.moves() && sleep(ctx, acceptPeriod) {
	}
}

// moves says whether a migration from or to the node is under way.
func (c *Controller) moves() bool {
	c.migrations.mu.Lock()
	var receives []protocol.Target
	for _, r := range c.migrations.runners {
		if !r.over() {
			c.migrations.mu.Unlock()
			return true
		}
	}
	for _, a := range c.migrations.accepted {
		receives = append(receives, a.to)
	}
	c.migrations.mu.Unlock()
	for _, to := range receives {
		v, s := c.handled(to)
		if s == nil {
			continue
		}
		switch s.stage(v.Status.MigrationState) {
		case protocol.MigrationReceives:
			return true
		case protocol.MigrationArrived:
			if v.Status.NodeName != c.config.Node { // it is to be reported
				return true
			}
		}
	}
	return false
}

// callMigration makes a call of a migration. Those between a handler and its own launcher are
// no other's.
func (c *Controller) callMigration(ctx context.Context, of protocol.Target, call protocol.Call, options json.RawMessage) (json.RawMessage, error) {
	what := fmt.Sprintf("%s VMI %s", call, of.Key())
	var s *session
	var err error
	var answer *protocol.MigrationStep
	switch call {
	case protocol.CallMigrationAnnounce:
		s, err = c.hold(ctx, of, options)
	case protocol.CallMigrationAccept:
		s, err = c.accept(ctx, of, options)
	case protocol.CallMigrationStart:
		s, err = c.start(ctx, of, options)
	case protocol.CallMigrationAbort:
		s, err = c.abort(ctx, of, options)
	case protocol.CallMigrationPrepare, protocol.CallMigrationFinish:
		s, answer, err = c.forward(ctx, of, call, options)
	default:
		err = transport.Refusal(protocol.ReasonUnknown, "it is a call of a handler and its own launchers")
	}
	switch {
	case err != nil:
		return nil, c.refused(what, s, false, err)
	case answer == nil:
		return nil, nil
	}
	return json.Marshal(answer)
}

// malformed is the error of options that cannot be read, or that say too little.
func malformed(options json.RawMessage, into any, complete func() bool) error {
	if err := json.Unmarshal(options, into); err != nil {
		return transport.Refusal(protocol.ReasonMalformed, "read the options: %v", transport.Limited(err))
	}
	if !complete() {
		return transport.Refusal(protocol.ReasonMalformed, "the options do not say enough")
	}
	return nil
}

// accept accepts a migration when its launcher waits for the guest. A repeated one may name
// another certificate: that of a handler that was restarted.
func (c *Controller) accept(ctx context.Context, of protocol.Target, options json.RawMessage) (*session, error) {
	var m protocol.MigrationAccept
	if err := malformed(options, &m, func() bool { return m.UID != "" && m.Certificate != "" && of.UID != "" && of.Pod != "" }); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, acceptTimeout)
	defer cancel()
	for {
		s, why, err := c.awaits(of, m.UID)
		if err == nil && why == "" {
			return s, c.remember(m.UID, acceptance{to: of, certificate: m.Certificate})
		}
		if err == nil && !sleep(ctx, acceptPeriod) {
			err = transport.Refusal(protocol.ReasonUnavailable, "%s", why)
		}
		if err != nil {
			return s, err
		}
	}
}

// awaits says why the launcher does not wait for the guest of the migration. Empty: it does, or
// has received it. An error says that it never will.
func (c *Controller) awaits(of protocol.Target, uid types.UID) (s *session, why string, err error) {
	v, s := c.handled(of)
	if s == nil {
		return nil, "the pod is not handed over to this virt-handler", nil
	}
	o := s.observe()
	switch m := v.Status.MigrationState; {
	case m == nil || m.MigrationUID != uid:
		return s, "the VMI's status names another migration", nil
	case (o.State == nil || o.State.Phase == protocol.Ended && s.stage(m) != protocol.MigrationArrived) && c.nothingLeft(of.Pod):
		return s, "", transport.Refusal(protocol.ReasonNotMoved, "nothing of the pod is left on node %s", c.config.Node)
	case o.State == nil:
		why = "the launcher does not answer"
	case !o.State.Movable:
		return s, "", tooOld()
	case s.stage(m) != "":
		return s, "", nil
	case o.Network == nil:
		why = "its network is not bound yet"
	case o.Put == nil || o.Put.Role != vmi.RoleTarget || o.Put.Stop != nil || o.State.Phase != protocol.Waiting:
		why = "the launcher does not wait for the guest yet"
	default:
		return s, "", nil
	}
	if o.Finding != nil {
		why += ": " + o.Finding.Reason + ": " + o.Finding.Message
	}
	return s, why, nil
}

func tooOld() error {
	return transport.Refusal(vmi.ReasonLauncherTooOld, "the launcher is of a release that does not migrate: restart the VMI to replace it")
}

// remember notes an acceptance, and drops those of pods that are not served any more.
func (c *Controller) remember(uid types.UID, a acceptance) error {
	m := &c.migrations
	m.mu.Lock()
	all := make(map[types.UID]acceptance, len(m.accepted))
	for uid, known := range m.accepted {
		all[uid] = known
	}
	m.mu.Unlock()
	for uid, known := range all { // the sessions have a lock of their own
		if _, s := c.handled(known.to); s != nil {
			delete(all, uid)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid := range all {
		delete(m.accepted, uid)
	}
	switch before, again := m.accepted[uid]; {
	case again:
		a.reported = before.reported
	case m.settling:
		return errSettling
	case len(m.accepted) >= mostAccepted:
		return transport.Refusal(protocol.ReasonBusy, "%d migrations come to this node", len(m.accepted))
	}
	if m.accepted == nil {
		m.accepted = map[types.UID]acceptance{}
	}
	m.accepted[uid] = a
	return nil
}

// errSettling is the refusal of a migration that would begin.
var errSettling = transport.Refusal(protocol.ReasonUnavailable, "this virt-handler is being stopped")

// forward makes a call of the handler of the source to the launcher that waits. The options
// must be about the migration that was accepted for the pod. The answer is typed: what is
// libvirt's in it must arrive as it is.
func (c *Controller) forward(ctx context.Context, of protocol.Target, call protocol.Call, options json.RawMessage) (*session, *protocol.MigrationStep, error) {
	var m protocol.MigrationStep
	if err := malformed(options, &m, func() bool { return m.UID != "" }); err != nil {
		return nil, nil, err
	}
	v, s := c.handled(of)
	if s == nil {
		return nil, nil, ErrNotHere
	}
	if !c.isAccepted(of, m.UID) {
		return s, nil, transport.Refusal(protocol.ReasonInvalid, "migration %s was not accepted for this pod", m.UID)
	}
	var end protocol.MigrationEnd
	moved := func(bool) {}
	if call == protocol.CallMigrationFinish && json.Unmarshal(options, &end) == nil && end.Moved {
		c.migrations.reported(end)
		if c.binder != nil {
			moved = c.announce(context.WithoutCancel(ctx), s, v)
		}
	}
	var answer protocol.MigrationStep
	err := s.client.Call(ctx, call, options, &answer)
	moved(err == nil)
	if err != nil {
		return s, nil, err
	}
	s.log.Info("called the launcher", "call", call, "migration", m.UID)
	return s, &protocol.MigrationStep{UID: m.UID, Cookie: answer.Cookie}, nil
}

// isAccepted says whether a migration was accepted for the launcher. An empty uid is any.
func (c *Controller) isAccepted(to protocol.Target, uid types.UID) bool {
	c.migrations.mu.Lock()
	defer c.migrations.mu.Unlock()
	for of, a := range c.migrations.accepted {
		if a.to == to && (of == uid || uid == "") {
			return true
		}
	}
	return false
}

// start starts a migration from the node, or goes on with it. A repeated one replaces where
// the handler of the target is. One that says that the target is over need not say that.
func (c *Controller) start(ctx context.Context, of protocol.Target, options json.RawMessage) (*session, error) {
	var m protocol.MigrationStart
	if err := malformed(options, &m, func() bool { return m.UID != "" && m.Pod != "" && (m.Over || m.Address != "" && m.Certificate != "") }); err != nil {
		return nil, err
	}
	// The guest moves nowhere but to the pod and the node that its status names.
	names := func(v *vmi.VirtualMachineInstance) bool {
		s := v.Status.MigrationState
		return s != nil && s.MigrationUID == m.UID && (m.Over || m.Node == s.TargetNode && v.Status.ActivePods[m.Pod] == m.Node)
	}
	v, s := c.handled(of)
	for range int(cacheLag / acceptPeriod) { // what names the migration was written just now
		if s == nil || names(v) || !sleep(ctx, acceptPeriod) {
			break
		}
		v, s = c.handled(of)
	}
	if s == nil {
		return nil, ErrNotHere
	}
	switch state := s.observe().State; {
	case !names(v):
		return s, transport.Refusal(protocol.ReasonUnavailable, "the VMI's status names another migration or target")
	case m.Over && state != nil && state.End != nil && state.End.Reason == protocol.MovedAway:
		return s, errMoved(m.UID)
	case state != nil && !state.Movable:
		return s, tooOld()
	case v.DeletionTimestamp != nil && s.stage(v.Status.MigrationState) != protocol.MigrationSent:
		return s, ErrStopping
	}
	of.UID, of.Pod = v.UID, s.podUID
	return s, c.begin(ctx, of, s, v, m)
}

// begin gives a start to the runner of the migration, or makes one.
func (c *Controller) begin(ctx context.Context, of protocol.Target, s *session, v *vmi.VirtualMachineInstance, start protocol.MigrationStart) error {
	m := &c.migrations
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.runners[of.Pod]; r != nil && !r.over() {
		if r.uid != start.UID {
			return transport.Refusal(protocol.ReasonBusy, "migration %s of the VMI has not ended", r.uid)
		}
		return r.restart(start)
	}
	if m.settling {
		return errSettling
	}
	r := newRunner(c, of, s, start)
	r.vmi = v
	if before := m.runners[of.Pod]; before != nil && before.uid == start.UID {
		if err := before.restart(start); err != nil {
			return err
		}
		r.finding = before.move().Finding // it had given up
	}
	if m.runners == nil {
		m.runners = map[types.UID]*runner{}
	}
	m.runners[of.Pod] = r
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.cancel = cancel
	m.unhold(of.Pod)
	m.running.Go(func() {
		defer cancel()
		if err := guarded(func() error { r.run(ctx); return nil }); err != nil {
			r.log.Error("run a migration", "err", err)
		}
		close(r.done)
		c.loop.Add(of.Key())
	})
	return nil
}

// abort ends a migration. One that was not begun is not begun any more.
func (c *Controller) abort(ctx context.Context, of protocol.Target, options json.RawMessage) (*session, error) {
	var m protocol.MigrationStep
	if err := malformed(options, &m, func() bool { return m.UID != "" }); err != nil {
		return nil, err
	}
	_, s := c.handled(of)
	if s == nil { // a handler that was just started does not know whether everything was sent
		return nil, transport.Refusal(protocol.ReasonUnavailable, "virt-handler has no session with the launcher yet")
	}
	if r := c.migrations.of(s.podUID); r != nil && r.uid == m.UID {
		r.cease(vmi.Finding{Message: "Live migration has been aborted"})
	}
	// What the session knows may be of before.
	err := s.client.Call(ctx, protocol.CallMigrationAbort, protocol.MigrationStep{UID: m.UID}, nil)
	if f, _ := refusalOf(err); f.Reason == protocol.ReasonNotFound || f.Reason == protocol.ReasonUnknown {
		return s, nil
	}
	return s, err
}

// of is the runner of the migration from the pod, which may have ended. Nil: there was none.
func (m *migrations) of(pod types.UID) *runner {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runners[pod]
}

// reported notes what the handler of the source says of a migration that was accepted, before its
// guest runs here.
func (m *migrations) reported(end protocol.MigrationEnd) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a, ok := m.accepted[end.UID]; ok {
		a.reported = handler.Move{UID: end.UID, Peer: end.Address, Mode: end.Mode}
		m.accepted[end.UID] = a
	}
}

// move is what is known of the migration from the pod, or, before there is one, of that to it.
func (m *migrations) move(pod types.UID) handler.Move {
	if r := m.of(pod); r != nil {
		return r.move()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.accepted {
		if a.to.Pod == pod && a.reported.UID != "" {
			return a.reported
		}
	}
	return handler.Move{}
}

// forget forgets the migration from a pod whose session is ended, unless it runs, and says
// whether it does.
func (m *migrations) forget(pod types.UID) (runs bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unhold(pod)
	r := m.runners[pod]
	if r == nil || r.over() {
		delete(m.runners, pod)
		return false
	}
	return true
}

// close ends all runners.
func (m *migrations) close() {
	m.mu.Lock()
	for pod := range m.holds {
		m.unhold(pod)
	}
	for _, r := range m.runners {
		r.cancel()
	}
	m.settling = true
	m.mu.Unlock()
	m.running.Wait()
}

// stage is where the migration stands for the launcher, by the last state that came. Empty: it
// takes no part in it.
func (s *session) stage(m *vmi.MigrationState) protocol.MigrationStage {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.state
	if s.next != nil {
		last = s.next
	}
	if m == nil || last == nil || last.Migration == nil || last.Migration.UID != m.MigrationUID {
		return ""
	}
	return last.Migration.Stage
}
