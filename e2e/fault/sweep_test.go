package fault

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/testenv"
)

var (
	seed     = flag.Uint64("seed", 1, "chooses the points")
	points   = flag.Int("points", 20, "how many points are chosen for a component")
	whole    = flag.Bool("whole", false, "all points")
	only     = flag.String("component", "", "only points of this component")
	kind     = flag.String("kind", "", "only points of these kinds of faults, with commas between them")
	step     = flag.String("step", "", "only the point of this step")
	withPool = flag.Bool("pools", false, "the trace has a pool, as with -whole and -step, and a third of what is not the whole is of it; with -whole, all points of it and no others")
	beside   = flag.Int("beside", 0, "how many points run at the same time. 0: 8 for each processor")
	summary  = flag.String("summary", "", "file that the numbers of points are added to")
	record   = flag.Bool("update", false, "write the steps into testdata")
)

// repeat is the command that tries a point again.
func repeat(p Point) string {
	return p.Repeat("-run '^TestPoints$' ./fault")
}

// components are those that are tried.
var components = []string{"virt-controller", "virt-handler"}

// outcome is what a point led to.
type outcome struct {
	counts map[string]int
	shots  map[string]shot
	hit    bool
	took   time.Duration
	err    error
}

// run runs the trace in a namespace of its own, with a fault or none. Want is what there is
// at its rests without a fault. Nil: it is not known yet.
func run(ctx context.Context, namespace string, p Point, want map[string]shot) (o outcome) {
	began := time.Now()
	defer func() { o.took = time.Since(began) }()
	s, err := newScene(ctx, namespace, p)
	defer s.end()
	if err != nil {
		o.err = err
		return o
	}
	c := s.tried
	u := &user{namespace: namespace, handled: s.handler != nil, pools: s.handler == nil && (*whole || *withPool || *step != ""), shots: map[string]shot{}, want: want}
	if err = s.awaitReady(ctx); err == nil {
		err = trace(ctx, u)
	}
	o.counts, o.shots, o.hit = c.proxy.Counts(), u.shots, c.proxy.Hit()
	if err == nil {
		var lives []life
		if lives, err = world.nodes.history(namespace); err == nil {
			vmis, vms := maps.Clone(wantedVMIs), map[string]int{}
			if u.pools {
				maps.Copy(vmis, pooledVMIs)
				vms = poolVMs
			}
			err = errors.Join(oracle(lives, len(u.failed), vmis), world.nodes.writers.oracle(namespace, wantedWriters), world.nodes.pools.oracle(namespace, vms),
				left(u.shots["deleted"]), s.oracle(), u.events(ctx, lives, p.Kind))
		}
	}
	if err == nil && p.Kind == "" && len(u.failed) > 0 {
		err = fmt.Errorf("migrations fail without a fault: %q", u.failed)
	}
	said := c.said()
	if err == nil && strings.Contains(said, "panic") {
		err = fmt.Errorf("the component panics")
	}
	if n := c.unexpected(); err == nil && n > 0 {
		err = fmt.Errorf("the component ended %d times by itself", n)
	}
	if err != nil {
		lives, gap := world.nodes.history(namespace)
		err = errors.Join(err, gap)
		o.err = fmt.Errorf("%w\nhistory: %+v\nlog:\n%s", err, lives, tail(said, 40))
	}
	return o
}

func tail(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// steps are those of a component in a trace without faults, and what there is at its rests:
// those that there were in each of two runs.
func steps(t *testing.T, component string) ([]Step, map[string]shot) {
	t.Helper()
	counts := map[string]int{}
	var all []outcome
	var want map[string]shot
	for i := range 2 {
		o := run(t.Context(), fmt.Sprintf("%s-%s-%d", prefix, component, i), Point{Component: component}, want)
		require.NoError(t, o.err)
		if i == 0 {
			want = o.shots
		}
		t.Logf("%s without a fault: %s", component, o.took.Round(time.Millisecond))
		all = append(all, o)
	}
	for name, n := range all[0].counts {
		if n = min(n, all[1].counts[name]); n > 0 {
			if strings.HasSuffix(name, " leases") || strings.HasSuffix(name, " nodes") {
				n = min(n, 2) // how many there are depends on the time
			}
			if strings.HasSuffix(name, " events") {
				n-- // the last one may be written after the end of the trace
			}
			counts[name] = n
		}
	}
	require.NoError(t, Minimum(filepath.Join("testdata", component+".yaml"), counts, *record))
	var out []Step
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		for i := range counts[name] {
			out = append(out, Step{name, i + 1})
		}
	}
	return out, want
}

// all are the points of the steps of a component.
func all(component string, steps []Step) []Point {
	var out []Point
	for _, k := range Kinds {
		for _, s := range steps {
			if k.At(s) && k != map[string]Kind{"virt-controller": Frozen, "virt-handler": Replaced}[component] {
				out = append(out, Point{component, k, s})
			}
		}
	}
	return out
}

func TestPoints(t *testing.T) {
	testenv.Root(t)
	require.NoError(t, world.err)
	turn := make(chan struct{}, cmp.Or(*beside, 8*runtime.NumCPU()))
	for _, name := range components {
		if *only == "" || *only == name {
			t.Run(name, func(t *testing.T) { // most of the time of a trace is spent in waits
				t.Parallel()
				sweep(t, name, turn)
			})
		}
	}
}

// sweep runs the points of a component. Each takes a place in turn.
func sweep(t *testing.T, component string, turn chan struct{}) {
	t.Helper()
	var chosen []Point
	possible, want := steps(t, component)
	for _, p := range all(component, possible) {
		if (*kind == "" || slices.Contains(strings.Split(*kind, ","), string(p.Kind))) && (*step == "" || p.Step.String() == *step) {
			chosen = append(chosen, p)
		}
	}
	if *withPool && *whole {
		chosen = slices.DeleteFunc(chosen, func(p Point) bool { return !ofPools(p.Step) })
	}
	n := len(chosen)
	if !*whole && *step == "" {
		n = *points
	}
	// By turns of the kinds, so that it is known of all while it runs. A third of what is not the
	// whole is of migrations or the pool, which are most of what can go wrong.
	var first []Point
	most := ofMigrations
	if *withPool {
		most = ofPools
	}
	if n != len(chosen) {
		first = Choose(slices.DeleteFunc(slices.Clone(chosen), func(p Point) bool { return !most(p.Step) }), n/3, *seed)
	}
	rest := slices.DeleteFunc(chosen, func(p Point) bool { return slices.Contains(first, p) })
	chosen = append(first, Choose(rest, n-len(first), *seed)...)
	t.Logf("%s: %d points", component, len(chosen))
	require.NotEmpty(t, chosen, "no step is so")
	var mu sync.Mutex
	done, missed := map[Kind]int{}, map[Kind]int{}
	var longest time.Duration
	began := time.Now()
	var wg sync.WaitGroup
	for i, p := range chosen {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			namespace := fmt.Sprintf("%s-%s-%d", prefix, strings.TrimPrefix(component, "virt-")[:1], i)
			o := run(t.Context(), namespace, p, want)
			_ = world.kube.CoreV1().Namespaces().Delete(context.Background(), namespace, metav1.DeleteOptions{})
			mu.Lock()
			defer mu.Unlock()
			longest = max(longest, o.took)
			switch {
			case o.err != nil:
				t.Errorf("%s: %v\n\nseed %d; to repeat it:\n  %s", p, o.err, *seed, repeat(p))
			case !o.hit:
				missed[p.Kind]++
				t.Logf("%s: there was no such step", p)
			default:
				done[p.Kind]++
			}
			if i%50 == 49 {
				t.Logf("%s: after %s, %d points were begun; survived: %v", component, time.Since(began).Round(time.Second), i+1, done)
			}
		})
	}
	wg.Wait()
	survived, m := 0, 0
	var out strings.Builder
	for _, k := range Kinds {
		survived, m = survived+done[k], m+missed[k]
		if done[k]+missed[k] > 0 {
			fmt.Fprintf(&out, "%-16s %-13s %4d survived, %d not reached\n", component, k, done[k], missed[k])
		}
	}
	fmt.Fprintf(&out, "%s: %d of %d points survived in %s, at %d steps; %d not reached; the longest took %s; seed %d\n",
		component, survived, len(chosen), time.Since(began).Round(time.Second), len(possible), m, longest.Round(time.Millisecond), *seed)
	summarize(t, out.String())
	require.LessOrEqual(t, m, len(chosen)/20, "points whose step there was not")
}

// summarize says what was swept, also where the output of a test that passes is not shown.
func summarize(t *testing.T, text string) {
	t.Helper()
	t.Log("\n" + text)
	if *summary == "" {
		return
	}
	f, err := os.OpenFile(*summary, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}
