package scale

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/e2e/audit"
)

const (
	// repeats is how often a user repeats what failed: an API server of a busy host may not
	// answer in time.
	repeats = 10
	// quiet is how long no component writes before a phase is over.
	quiet = 3 * time.Second
)

// components are whose requests are counted. Others are those of the API server to itself, and of
// what looks whether it serves.
var components = []string{"virt-controller", "virt-handler", "kubelet", "garbage-collector", "users"}

// counts are requests by what they are.
type counts map[string]int

// lasting says that the requests are watches, which begin by time and not by object.
func lasting(what string) bool { return strings.HasPrefix(what, "watch ") }

// changing are the verbs of requests that write.
var changing = []string{"create", "update", "patch", "delete"}

// writes are how many of the requests wrote.
func (c counts) writes() (n int) {
	for what, k := range c {
		verb, resource, _ := strings.Cut(what, " ")
		resource, _, refused := strings.Cut(resource, " answered ")
		if slices.Contains(changing, verb) && resource != "leases" && !refused {
			n += k
		}
	}
	return n
}

func (c counts) sum() (n int) {
	for what, k := range c {
		if what != "events" && !lasting(what) && !strings.HasSuffix(what, " leases") {
			n += k
		}
	}
	return n
}

// point is what was used so far.
type point struct {
	at                          time.Time
	controller, apiserver, etcd time.Duration
	rss                         int64 // of virt-controller
	restarts                    int   // of virt-controller
	requests                    map[string]counts
}

// now is the point of now.
func (r *rig) now() (p point, err error) {
	p.at = time.Now()
	p.controller, p.rss, p.restarts = r.controller.use()
	if p.apiserver, err = processorTime(r.apiserver); err != nil {
		return p, err
	}
	if p.etcd, err = processorTime(r.etcd); err != nil {
		return p, err
	}
	err = r.audit.Next(func(e audit.Entry) {
		if !e.Complete() || !slices.Contains(components, e.Component()) {
			return
		}
		of := r.log[e.Component()]
		if of == nil {
			of = counts{}
			r.log[e.Component()] = of
		}
		what := e.What()
		if code := e.ResponseStatus.Code; code >= http.StatusBadRequest && what != "events" {
			what += fmt.Sprintf(" answered %d", code)
		}
		of[what]++
	})
	p.requests = map[string]counts{}
	for component, of := range r.log {
		p.requests[component] = maps.Clone(of)
	}
	return p, err
}

// step is what a phase used.
type step struct {
	seconds                     float64 // until what was waited for, without the time until it was quiet
	controller, apiserver, etcd time.Duration
	rss                         int64 // of virt-controller, more at the end
	restarts                    int   // of virt-controller
	requests                    map[string]counts
}

func (p point) since(before point, seconds float64) step {
	s := step{seconds: seconds, controller: p.controller - before.controller, apiserver: p.apiserver - before.apiserver, etcd: p.etcd - before.etcd,
		rss: p.rss - before.rss, restarts: p.restarts - before.restarts, requests: map[string]counts{}}
	for component, of := range p.requests {
		for what, n := range of {
			if n -= before.requests[component][what]; n > 0 {
				if s.requests[component] == nil {
					s.requests[component] = counts{}
				}
				s.requests[component][what] = n
			}
		}
	}
	return s
}

// measured is one run.
type measured struct {
	kind               string
	n                  int
	start, idle, ended step
	// idleSeconds is how long nothing was done.
	idleSeconds float64
	events      events
	// repeated is how many requests of users failed and were repeated.
	repeated int64
}

// measure creates n objects, lets them run, and deletes them.
func (r *rig) measure(ctx context.Context, k kind, n int) (m measured, err error) {
	// A host that does other things takes its time: what is measured is processor time.
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute+time.Duration(n)*time.Second)
	defer cancel()
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	all := r.see(watching, k)
	if err := all.until(ctx, 0, 0); err != nil {
		return m, err
	}
	m = measured{kind: k.name, n: n}
	r.repeated.Store(0)
	defer func() { m.repeated = r.repeated.Load() }()
	names, makes := k.objects(n)
	create := func(ctx context.Context, r *rig, name string) error { return k.create(ctx, r, name, makes) }
	each := func(do func(context.Context, *rig, string) error, running, there int, profile string) (step, error) {
		before, err := r.now()
		if err != nil {
			return step{}, err
		}
		stop := r.profiles(ctx, profile)
		if err := r.forAll(ctx, names, do); err != nil {
			return step{}, err
		}
		if err := all.until(ctx, running, there); err != nil {
			return step{}, fmt.Errorf("%w; %s", err, r.logEnd("virt-controller"))
		}
		seconds := time.Since(before.at).Seconds()
		if err := r.untilQuiet(ctx); err != nil {
			return step{}, err
		}
		after, err := r.now()
		return after.since(before, seconds), errors.Join(err, stop())
	}
	profile := fmt.Sprintf("%s-%d", k.name, n)
	if m.start, err = each(create, n, n, profile+"-start"); err != nil {
		return m, fmt.Errorf("create: %w", err)
	}
	r.say("  %s: %d run after %.1f s", k.name, n, m.start.seconds)
	before, err := r.now()
	if err != nil {
		return m, err
	}
	select {
	case <-ctx.Done():
		return m, ctx.Err()
	case <-time.After(r.Idle):
	}
	after, err := r.now()
	if err != nil {
		return m, err
	}
	m.idleSeconds = r.Idle.Seconds()
	m.idle = after.since(before, m.idleSeconds)
	if err := r.heaps(ctx, profile); err != nil {
		return m, err
	}
	// What a VMI takes is what is there when it has run for a while.
	m.start.rss += after.rss - before.rss
	uids, err := r.instances(ctx)
	if err != nil {
		return m, err
	}
	if m.ended, err = each(k.remove, 0, 0, profile+"-end"); err != nil {
		return m, fmt.Errorf("delete: %w", err)
	}
	m.events, err = r.countEvents(ctx, uids, slices.Concat(k.started, k.ended))
	return m, err
}

// forAll calls do for all names, some at a time.
func (r *rig) forAll(ctx context.Context, names []string, do func(context.Context, *rig, string) error) error {
	next := make(chan string)
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	for range r.Users {
		wg.Go(func() {
			for name := range next {
				err := do(ctx, r, name)
				for i := 0; i < repeats && err != nil && ctx.Err() == nil; i++ {
					r.repeated.Add(1)
					time.Sleep(time.Second)
					err = do(ctx, r, name)
				}
				if err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, name := range names {
		next <- name
	}
	close(next)
	wg.Wait()
	if len(errs) > 3 {
		errs = append(errs[:3], fmt.Errorf("and %d more", len(errs)-3))
	}
	return errors.Join(errs...)
}

// untilQuiet waits until no component has written for a while.
func (r *rig) untilQuiet(ctx context.Context) error {
	last, since := -1, time.Now()
	for time.Since(since) < quiet {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
		now, err := r.now()
		if err != nil {
			return err
		}
		n := 0
		for _, of := range now.requests {
			n += of.writes() + of["events"]
		}
		if n != last {
			last, since = n, time.Now()
		}
	}
	return nil
}

// instances are the UIDs of the VMIs that there are.
func (r *rig) instances(ctx context.Context) (map[types.UID]bool, error) {
	l, err := r.vmis.VirtualMachineInstances(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all := map[types.UID]bool{}
	for _, v := range l.Items {
		all[v.UID] = true
	}
	return all, nil
}

// events are what was found of the events that each VMI should have once. missing are the
// reasons of those that were lost.
type events struct {
	made, lost, repeated, others int
	missing                      counts
}

// countEvents looks for events of the reasons about the VMIs.
func (r *rig) countEvents(ctx context.Context, of map[types.UID]bool, reasons []string) (e events, err error) {
	l, err := r.kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return e, err
	}
	type key struct {
		uid    types.UID
		reason string
	}
	found := map[key]int{}
	e.missing = counts{}
	for _, i := range l.Items {
		if !of[i.InvolvedObject.UID] {
			continue
		}
		e.made++
		if !slices.Contains(reasons, i.Reason) {
			e.others++
			continue
		}
		k := key{i.InvolvedObject.UID, i.Reason}
		found[k] += max(1, int(i.Count))
		if found[k] > 1 {
			e.repeated++
		}
	}
	for uid := range of {
		for _, reason := range reasons {
			if found[key{uid, reason}] == 0 {
				e.lost++
				e.missing[reason]++
			}
		}
	}
	return e, nil
}

func (r *rig) say(format string, args ...any) { _, _ = fmt.Fprintf(r.Out, format+"\n", args...) }

// keepLogs copies the logs of the programs to where they are kept, if profiles are.
func (r *rig) keepLogs() {
	if r.Profiles == "" {
		return
	}
	for _, name := range []string{"virt-controller", "virt-handler"} {
		if text, err := os.ReadFile(filepath.Join(r.dir, name+".log")); err == nil {
			_ = os.WriteFile(filepath.Join(r.Profiles, name+".log"), text, 0o600)
		}
	}
}
