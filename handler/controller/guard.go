package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// Times of a guard. Kubernetes takes 40 s to find out that a node does not respond. The
// handler must not be ready any more by then, and the kubelet takes 15 s to see that.
const (
	// reachPeriod is the time between two questions whether the API server answers.
	reachPeriod = 8 * time.Second
	// mostFailures is how many of them may fail: one may be of a server that restarts.
	mostFailures = 2
	// againPeriod is the time between two tries of what failed.
	againPeriod = time.Second
	// strayLimit is how long the handler is not ready because of launchers that do not end,
	// or do not answer. A tenant controls them, and must not take the node from all others.
	// It is well below the 40 s after which virt-controller writes of every VMI of the node
	// that its handler is not ready.
	strayLimit = 20 * time.Second
	// mostAsked is how many launchers are asked at a time.
	mostAsked = 64
)

// disobeyed is why the handler is not ready if that depends on tenants alone: launchers do
// not end, or do not answer. All else is known of the node.
type disobeyed struct{ error }

// guard keeps the handler from being ready until no guest runs on the node whose VMI does
// not run in its pod: after the handler was started, and after the API server was away for
// the node, which may have been fenced meanwhile. It ends such guests.
//
// Two loops do so. One asks the API server, the other the launchers, which tenants control:
// those that hang must not keep the guard from the API server until the node is fenced.
type guard struct {
	*Controller
	// reach asks the API server for as little as can be, every period.
	reach  func(context.Context) error
	period time.Duration
	// wake is sent to when the launchers are to be asked at once.
	wake chan struct{}

	// failures are those of the loop that asks the API server.
	failures int
	// strays are the launchers that are to end, of the loop that asks them.
	strays map[types.UID]*control.Client

	// compared says that the launchers were compared with the VMIs since the start, and that
	// those that are to end have ended, or had their time.
	compared atomic.Bool

	mu    sync.Mutex
	fault error
	// found are pods whose guests are to end, besides those that it finds.
	found []types.UID
	// unsure says that the launchers are to be compared with the VMIs.
	unsure bool
	// since is when the API server answered again. Zero: it does not answer.
	since time.Time
	// absences is how often it was away. A comparison that began before is void.
	absences int
}

func newGuard(c *Controller) *guard {
	return &guard{Controller: c, reach: c.reachAPI, period: reachPeriod, wake: make(chan struct{}, 1), unsure: true, strays: map[types.UID]*control.Client{},
		fault: errors.New("the guests on the node have not been compared with its VMIs yet")}
}

// reachAPI reads the one KubeVirt of the cluster. It names no version, so that the API server
// must ask its store, as for the lease of the node: one that is cut off from its store would
// answer from its cache while the node is being fenced. An API server that asks its store
// for the version alone and answers from its cache (Kubernetes 1.31 and later) does so too.
func (c *Controller) reachAPI(ctx context.Context) error {
	_, err := c.config.Client.KubeVirts(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	return err
}

// end ends the guest in the pod, until it has ended or is not there.
func (g *guard) end(pod types.UID) {
	g.mu.Lock()
	g.found = append(g.found, pod)
	g.mu.Unlock()
	g.hurry()
}

// doubt has the launchers compared with the VMIs again.
func (g *guard) doubt() {
	g.mu.Lock()
	g.unsure = true
	g.mu.Unlock()
	g.hurry()
}

// hurry has the launchers asked at once.
func (g *guard) hurry() {
	select {
	case g.wake <- struct{}{}:
	default: // it was sent to already
	}
}

// takeFound makes what was found strays.
func (g *guard) takeFound() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, uid := range g.found {
		g.log.Warn("end a guest whose VMI was ended since its node was fenced", "pod", uid)
		g.strays[uid] = g.launcher(uid)
	}
	g.found = nil
}

// ready returns why the handler is not.
func (g *guard) ready() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fault
}

// change changes what is known, and logs whether the handler is ready if that is another.
func (g *guard) change(do func()) {
	g.mu.Lock()
	before := g.fault
	do()
	after := g.fault
	g.mu.Unlock()
	if after == nil {
		g.compared.Store(true)
	}
	switch {
	case before == nil && after != nil:
		g.log.Warn("not ready", "err", after)
	case before != nil && after == nil:
		g.log.Info("every guest on the node is that of a VMI that runs in its pod")
	}
}

// run guards until ctx ends.
func (g *guard) run(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	asking.Go(func() {
		for sleep(ctx, g.ask(ctx)) {
		}
	})
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-g.wake:
		case <-time.After(g.once(ctx)):
		}
	}
}

// foreign reports whether the guests are those of KubeVirt itself.
func (g *guard) foreign() bool {
	s := g.config.Settings
	return s != nil && s.OtherInstallation() != ""
}

// ask asks the API server, and returns when it is to be called again.
func (g *guard) ask(ctx context.Context) time.Duration {
	if g.foreign() {
		return againPeriod
	}
	if err := g.bounded(ctx, g.reach); err != nil {
		if g.failures++; g.failures >= mostFailures {
			g.change(func() {
				if !g.since.IsZero() {
					g.absences++
				}
				g.unsure, g.since, g.fault = true, time.Time{}, fmt.Errorf("the API server does not answer: %w", err)
			})
		}
		return againPeriod
	}
	g.failures = 0
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.since.IsZero() {
		g.since = g.timing.now()
		g.hurry()
	}
	return g.period
}

// once compares and ends launchers if there is cause, and returns when it is to be called
// again.
func (g *guard) once(ctx context.Context) time.Duration {
	if g.foreign() {
		return againPeriod
	}
	g.takeFound()
	g.mu.Lock()
	unsure, since, absences := g.unsure, g.since, g.absences
	g.mu.Unlock()
	switch {
	case !unsure && len(g.strays) == 0:
		return g.period
	case since.IsZero(): // what is to end, ends
		g.destroy(ctx)
		return againPeriod
	}
	unsure, err := g.settle(ctx, unsure)
	again := againPeriod
	if over := g.timing.now().Sub(since) > strayLimit; over && errors.As(err, &disobeyed{}) {
		if g.ready() != nil {
			g.log.Error("launchers do not end or do not answer, and the handler is ready", "err", err)
		}
		err = nil
	}
	if err == nil {
		again = g.period
	}
	g.change(func() {
		if g.absences == absences && !g.since.IsZero() {
			g.unsure, g.fault = unsure, err
		}
	})
	return again
}

func (g *guard) bounded(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, g.timing.answer)
	defer cancel()
	return do(ctx)
}

// settle ends the guests of VMIs that do not run in their pods, and returns whether it is
// still not known of all. The error is that there are some, or that it is not known.
func (g *guard) settle(ctx context.Context, unsure bool) (stillUnsure bool, err error) {
	var silent error
	if unsure {
		found, mute, err := g.domains(ctx)
		if err != nil {
			return true, err
		}
		toEnd, mute, err := g.compare(ctx, found, mute)
		if err != nil {
			return true, err
		}
		for _, uid := range toEnd {
			g.log.Warn("end a guest whose VMI does not run in its pod", "pod", uid)
			g.strays[uid] = g.launcher(uid)
		}
		if unsure = len(mute) > 0; unsure {
			silent = disobeyed{fmt.Errorf("%d launchers whose VMIs are not here do not answer", len(mute))}
		}
	}
	g.destroy(ctx)
	if len(g.strays) > 0 {
		return unsure, disobeyed{fmt.Errorf("%d guests run whose VMIs do not run in their pods, and are being ended", len(g.strays))}
	}
	return unsure, silent
}

func (g *guard) launcher(uid types.UID) *control.Client {
	return control.NewClient(func(ctx context.Context) (net.Conn, error) { return g.config.Dial(ctx, string(uid)) })
}

// domains are the pods on the node whose launchers have a domain, and those whose launchers
// do not answer.
func (g *guard) domains(ctx context.Context) (found, mute []types.UID, err error) {
	if g.config.Launchers == nil {
		return nil, nil, nil
	}
	all, err := g.config.Launchers()
	if err != nil {
		return nil, nil, fmt.Errorf("find the launchers on the node: %w", err)
	}
	var mu sync.Mutex
	g.each(all, func(uid types.UID) {
		runs, answers := g.runs(ctx, g.launcher(uid))
		mu.Lock()
		defer mu.Unlock()
		switch {
		case !answers:
			mute = append(mute, uid)
		case runs:
			found = append(found, uid)
		}
	})
	return found, mute, nil
}

// each calls do for each of the pods, for several at a time.
func (g *guard) each(all []types.UID, do func(types.UID)) {
	var wg sync.WaitGroup
	places := make(chan struct{}, mostAsked)
	for _, uid := range all {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			if err := guarded(func() error { do(uid); return nil }); err != nil {
				g.log.Error("ask a launcher", "pod", uid, "err", err)
			}
		})
	}
	wg.Wait()
}

// runs says whether the launcher has a domain. One that does not answer may have; one that
// is not there has none.
func (g *guard) runs(ctx context.Context, c *control.Client) (runs, answers bool) {
	var state protocol.State
	err := g.bounded(ctx, func(ctx context.Context) (err error) {
		state, err = c.State(ctx)
		return err
	})
	if err != nil {
		return false, !errors.Is(err, context.DeadlineExceeded)
	}
	phase := state.Sanitized().Phase
	return phase != protocol.Waiting && phase != protocol.Ended, true
}

// compare lists the VMIs of the node, and returns which of the pods, of both kinds, none
// runs in.
func (g *guard) compare(ctx context.Context, found, mute []types.UID) (strayFound, strayMute []types.UID, err error) {
	if len(found)+len(mute) == 0 {
		return nil, nil, nil
	}
	var all []*vmi.VirtualMachineInstance
	// One that moves here is in both, when it has arrived.
	for _, field := range []string{"status.migrationState.targetNode", "status.nodeName"} {
		err := g.bounded(ctx, func(ctx context.Context) error {
			l, err := g.config.Client.VirtualMachineInstances(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: field + "=" + g.config.Node})
			if l != nil {
				for i := range l.Items {
					all = append(all, &l.Items[i])
				}
			}
			if errors.Is(err, vmi.ErrUnreadable) {
				return nil // their status can be read
			}
			return err
		})
		if err != nil {
			return nil, nil, fmt.Errorf("list the VMIs of the node: %w", err)
		}
	}
	return strays(found, all, g.config.Node), strays(mute, all, g.config.Node), nil
}

// destroy ends the guests of the strays, and drops those that have ended.
func (g *guard) destroy(ctx context.Context) {
	var all []types.UID
	for uid := range g.strays {
		all = append(all, uid)
	}
	var mu sync.Mutex
	g.each(all, func(uid types.UID) {
		mu.Lock()
		c := g.strays[uid]
		mu.Unlock()
		var runs, answers bool
		err := g.bounded(ctx, func(ctx context.Context) error { // of both: one that hangs has the time once
			err := c.Call(ctx, protocol.CallDestroy, nil, nil)
			runs, answers = g.runs(ctx, c)
			return err
		})
		if answers && !runs {
			g.log.Info("ended a guest whose VMI does not run in its pod", "pod", uid)
			mu.Lock()
			delete(g.strays, uid)
			mu.Unlock()
			return
		}
		if err != nil {
			g.log.Debug("end a guest whose VMI does not run in its pod: retry", "pod", uid, "err", err)
		}
	})
}
