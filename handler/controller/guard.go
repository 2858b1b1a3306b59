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
	// mostAsked is how many launchers are asked at a time. Those that hang must not keep the
	// guard from the API server until the node is fenced.
	mostAsked = 64
)

// disobeyed is why the handler is not ready if that depends on tenants alone: launchers do
// not end, or do not answer. All else is known of the node.
type disobeyed struct{ error }

// guard keeps the handler from being ready until no guest runs on the node whose VMI does
// not run in its pod: after the handler was started, and after the API server was away for
// the node, which may have been fenced meanwhile. It ends such guests.
type guard struct {
	*Controller
	// reach asks the API server for as little as can be, every period.
	reach  func(context.Context) error
	period time.Duration

	// unsure says that the launchers are to be compared with the VMIs.
	unsure   bool
	failures int
	// since is when the API server answered again. Zero: it does not answer.
	since time.Time
	// strays are the launchers that are to end.
	strays map[types.UID]*control.Client

	// compared says that the launchers were compared with the VMIs since the start, and that
	// those that are to end have ended, or had their time.
	compared atomic.Bool
	wake     chan struct{}

	mu    sync.Mutex
	fault error
	// found are pods whose guests are to end, besides those that it finds.
	found []types.UID
}

func newGuard(c *Controller) *guard {
	return &guard{Controller: c, reach: c.reachAPI, period: reachPeriod, unsure: true, strays: map[types.UID]*control.Client{}, wake: make(chan struct{}, 1),
		fault: errors.New("the guests on the node have not been compared with its VMIs yet")}
}

// reachAPI reads the one KubeVirt of the cluster, as it is now: an API server that answers by
// its cache alone may be cut off itself, while the node is fenced by another.
func (c *Controller) reachAPI(ctx context.Context) error {
	_, err := c.config.Client.KubeVirts(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	return err
}

// end ends the guest in the pod, until it has ended or is not there.
func (g *guard) end(pod types.UID) {
	g.mu.Lock()
	g.found = append(g.found, pod)
	g.mu.Unlock()
	select {
	case g.wake <- struct{}{}:
	default:
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

func (g *guard) set(fault error) {
	g.mu.Lock()
	before := g.fault
	g.fault = fault
	g.mu.Unlock()
	if fault == nil {
		g.compared.Store(true)
	}
	switch {
	case before == nil && fault != nil:
		g.log.Warn("not ready", "err", fault)
	case before != nil && fault == nil:
		g.log.Info("every guest on the node is that of a VMI that runs in its pod")
	}
}

// run guards until ctx ends.
func (g *guard) run(ctx context.Context) {
	for {
		t := time.NewTimer(g.once(ctx))
		select {
		case <-t.C:
		case <-g.wake:
			t.Stop()
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

// once asks the API server, and compares and ends launchers if there is cause. It returns
// when it is to be called again.
func (g *guard) once(ctx context.Context) time.Duration {
	if s := g.config.Settings; s != nil && s.OtherInstallation() != "" {
		return againPeriod // the guests are not ours
	}
	g.takeFound()
	if err := g.bounded(ctx, g.reach); err != nil {
		if g.failures++; g.failures >= mostFailures {
			g.unsure, g.since = true, time.Time{}
			g.set(fmt.Errorf("the API server does not answer: %w", err))
		}
		return againPeriod
	}
	g.failures = 0
	if !g.unsure && len(g.strays) == 0 {
		return g.period
	}
	if g.since.IsZero() {
		g.since = g.timing.now()
	}
	err := g.settle(ctx)
	if err == nil {
		g.set(nil)
		return g.period
	}
	if over := g.timing.now().Sub(g.since) > strayLimit; over && errors.As(err, &disobeyed{}) {
		if g.ready() != nil {
			g.log.Error("launchers do not end or do not answer, and the handler is ready", "err", err)
		}
		g.set(nil)
		return g.period
	}
	g.set(err)
	return againPeriod
}

func (g *guard) bounded(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, g.timing.answer)
	defer cancel()
	return do(ctx)
}

// settle ends the guests of VMIs that do not run in their pods. The error is that there are
// some, or that it is not known.
func (g *guard) settle(ctx context.Context) error {
	var silent error
	if g.unsure {
		found, mute, err := g.domains(ctx)
		if err != nil {
			return err
		}
		toEnd, mute, err := g.compare(ctx, found, mute)
		if err != nil {
			return err
		}
		for _, uid := range toEnd {
			g.log.Warn("end a guest whose VMI does not run in its pod", "pod", uid)
			g.strays[uid] = g.launcher(uid)
		}
		if g.unsure = len(mute) > 0; g.unsure {
			silent = disobeyed{fmt.Errorf("%d launchers whose VMIs are not here do not answer", len(mute))}
		}
	}
	g.destroy(ctx)
	if len(g.strays) > 0 {
		return disobeyed{fmt.Errorf("%d guests run whose VMIs do not run in their pods, and are being ended", len(g.strays))}
	}
	return silent
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
