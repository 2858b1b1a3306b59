package e2e

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/e2e/fault"
	"github.com/podvisor/podvisor/internal/testenv"
)

// The flags of TestCrashes are those of the sweep in package fault.
var (
	crashSeed    = flag.Uint64("seed", 1, "chooses the points of TestCrashes")
	crashPoints  = flag.Int("points", 4, "how many points are chosen, of components of pods")
	crashWhole   = flag.Bool("whole", false, "all points")
	crashOnly    = flag.String("component", "", "only points of these components, with commas between them")
	crashKind    = flag.String("kind", "", "only points of these kinds of faults, with commas between them")
	crashStep    = flag.String("step", "", "only the point of this step")
	crashBeside  = flag.Int("beside", 4, "how many points of pods run at the same time")
	crashSummary = flag.String("summary", "", "file that the numbers of points are added to")
	crashRecord  = flag.Bool("update", false, "write the steps into testdata")
)

// crashKinds are the faults of each component. Those of the programs of a node meet all that
// is on the node, so that one point at a time runs there.
var crashKinds = map[string][]fault.Kind{
	"virt-launcher": {fault.Killed, fault.Stopped, fault.OutOfMemory},
	"libvirtd":      {fault.Killed, fault.Stopped},
	"containerd":    {fault.Killed, fault.Stopped},
	"kubelet":       {fault.Killed, fault.Stopped},
}

// nodePrograms are the components that a whole node has.
var nodePrograms = []string{"containerd", "kubelet"}

// known is what the traces without a fault showed.
type known struct {
	counts  map[string]int
	running map[fault.Step][]string
	shots   map[string]map[string]shot // by trace
}

// points are all points that there are.
func (k known) points() (all []fault.Point) {
	for _, step := range slices.SortedFunc(maps.Keys(k.running), func(a, b fault.Step) int { return cmp.Compare(a.String(), b.String()) }) {
		for _, c := range k.running[step] {
			for _, kind := range append(slices.Clip(crashKinds[c]), moveKinds[c]...) {
				all = append(all, fault.Point{Component: c, Kind: kind, Step: step})
			}
		}
	}
	return all
}

// endsBySelf reports whether the programs of a pod end by themselves at this step, so that a fault
// may come too late for them.
func endsBySelf(s fault.Step) bool {
	_, state, _ := strings.Cut(s.Name, " ")
	return slices.Contains([]string{"QEMU ended", "end written", "launcher ended", "pod ended", "pod gone", "gone"}, state) || slices.Contains(lateMoves, state)
}

// ofMove reports whether the point is one of a migration.
func ofMove(p fault.Point) bool { return strings.HasPrefix(p.Step.Name, "move ") }

// movePoints is how many points of migrations are chosen at most.
const movePoints = 2

func chosen(list, value string) bool {
	return list == "" || slices.Contains(strings.Split(list, ","), value)
}

// TestCrashes kills and stops what runs a VMI on its node, at every state of its life that can
// be observed, and what moves it to another node. Without a flag it does some of the points that leave other VMIs alone.
func TestCrashes(t *testing.T) {
	t.Parallel()
	testenv.Root(t)
	require.NoError(t, world.err, "set up the cluster")
	loadCounter(t)
	k := baseline(t)
	var some []fault.Point
	for _, p := range k.points() {
		of := chosen(*crashOnly, p.Component) && chosen(*crashKind, string(p.Kind)) && (*crashStep == "" || p.Step.String() == *crashStep)
		if !*crashWhole && *crashStep == "" {
			of = of && !slices.Contains(nodePrograms, p.Component) && !slices.Contains(clusterPrograms, p.Component) && !strings.HasPrefix(p.Step.Name, "guest ") && !endsBySelf(p.Step)
		}
		if of {
			some = append(some, p)
		}
	}
	if !*crashWhole && *crashStep == "" {
		move := slices.DeleteFunc(slices.Clone(some), func(p fault.Point) bool { return !ofMove(p) })
		move = fault.Choose(move, min(movePoints, *crashPoints), *crashSeed)
		some = slices.DeleteFunc(some, ofMove)
		some = append(fault.Choose(some, *crashPoints-len(move), *crashSeed), move...)
	} else {
		some = fault.Choose(some, len(some), *crashSeed)
	}
	require.NotEmpty(t, some, "no step is so")
	r := &results{began: time.Now(), survived: map[string]int{}, missed: map[string]int{}, failed: map[string]int{}}
	defer r.say(t, len(k.running))
	t.Run("pods", func(t *testing.T) {
		turn := make(chan struct{}, *crashBeside)
		for _, p := range some {
			if slices.Contains(nodePrograms, p.Component) || slices.Contains(clusterPrograms, p.Component) {
				continue
			}
			t.Run(p.String(), func(t *testing.T) {
				t.Parallel()
				turn <- struct{}{}
				defer func() { <-turn }()
				k.try(t, p, "n1", r)
			})
		}
	})
	t.Run("nodes", func(t *testing.T) {
		for i, node := range nodes {
			t.Run(node, func(t *testing.T) {
				t.Parallel()
				at := 0
				for _, p := range some {
					if !slices.Contains(nodePrograms, p.Component) {
						continue
					}
					if at++; at%len(nodes) == i {
						t.Run(p.String(), func(t *testing.T) { k.try(t, p, node, r) })
					}
				}
			})
		}
	})
	t.Run("cluster", func(t *testing.T) {
		for _, p := range some {
			if slices.Contains(clusterPrograms, p.Component) {
				t.Run(p.String(), func(t *testing.T) { k.try(t, p, "n1", r) })
			}
		}
	})
}

// baseline is what there is without a fault: the steps that there were in each of two runs, or,
// where only some points follow, in one.
func baseline(t *testing.T) (k known) {
	t.Helper()
	k = known{counts: map[string]int{}, running: map[fault.Step][]string{}, shots: map[string]map[string]shot{}}
	runs := 1
	if *crashWhole || *crashRecord {
		runs = 2
	}
	var mu sync.Mutex
	seen := map[fault.Step]int{}
	t.Run("without a fault", func(t *testing.T) {
		for trace := range crashTraces {
			if *crashStep != "" && !strings.HasPrefix(*crashStep, trace+" ") {
				continue
			}
			if trace == "guest" && runs == 1 && *crashStep == "" {
				continue // it boots
			}
			t.Run(trace, func(t *testing.T) {
				t.Parallel()
				var want map[string]shot
				for range runs {
					t.Run("", func(t *testing.T) {
						s := play(t, fault.Point{}, trace, "n1", want)
						want = s.shots
						mu.Lock()
						defer mu.Unlock()
						k.shots[trace] = s.shots
						for _, step := range s.steps {
							seen[step]++
							if seen[step] == runs {
								k.counts[step.Name]++
								k.running[step] = s.running[step]
							}
						}
					})
				}
			})
		}
	})
	// What guest has until it has booted is what vmi has.
	maps.DeleteFunc(k.running, func(s fault.Step, _ []string) bool {
		rest, is := strings.CutPrefix(s.Name, "guest ")
		return is && !slices.Contains([]string{"booted", "stop asked", "QEMU ended"}, rest)
	})
	for trace := range k.shots {
		counts := maps.Clone(k.counts)
		maps.DeleteFunc(counts, func(name string, _ int) bool { return !strings.HasPrefix(name, trace+" ") })
		require.NoError(t, fault.Minimum("testdata/crash-"+trace+".yaml", counts, *crashRecord))
	}
	return k
}

// try tries one point.
func (k known) try(t *testing.T, p fault.Point, node string, r *results) {
	trace, _, _ := strings.Cut(p.Step.Name, " ")
	var s *scene
	began := time.Now()
	t.Cleanup(func() {
		t.Log(r.add(p, s != nil && s.hit, t.Failed(), time.Since(began)))
		if t.Failed() {
			t.Logf("to repeat it:\n  %s", p.Repeat("-run '^TestCrashes$' ."))
		}
	})
	s = play(t, p, trace, node, k.shots[trace])
}

// play plays a trace, with a fault or none, and judges it.
func play(t *testing.T, p fault.Point, trace, node string, want map[string]shot) *scene {
	t.Helper()
	s := &scene{space: newSpace(t), Point: p, node: node, want: want, shots: map[string]shot{}}
	s.endTurn() // next to nothing boots
	s.watch()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.history())
		}
	})
	if slices.Contains(nodePrograms, p.Component) {
		s.awaitNode()
		defer s.awaitNode()
	}
	if slices.Contains(clusterPrograms, p.Component) {
		s.renew()
		defer s.renew()
	}
	crashTraces[trace](s)
	s.awaitFault()
	s.oracle(trace)
	return s
}

// results count the points.
type results struct {
	began time.Time

	mu                       sync.Mutex
	survived, missed, failed map[string]int
	longest                  time.Duration
}

// add adds a point, and says so.
func (r *results) add(p fault.Point, hit, failed bool, took time.Duration) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.longest = max(r.longest, took)
	to, end := r.survived, "survived"
	switch {
	case failed:
		to, end = r.failed, "failed"
	case !hit:
		to, end = r.missed, "not reached"
	}
	to[fmt.Sprintf("%-14s %s", p.Component, p.Kind)]++
	to["at "+p.Step.String()]++
	to["points"]++
	return fmt.Sprintf("%s: %s after %s, point %d", p, end, took.Round(time.Millisecond), r.survived["points"]+r.failed["points"]+r.missed["points"])
}

// say writes the numbers of points by kind and by step.
func (r *results) say(t *testing.T, steps int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	names := maps.Clone(r.survived)
	maps.Copy(names, r.missed)
	maps.Copy(names, r.failed)
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(&out, "crash %-40s %4d survived, %d failed, %d not reached\n", name, r.survived[name], r.failed[name], r.missed[name])
	}
	looks, longest, err := watched().said("")
	fmt.Fprintf(&out, "crash: %d points survived in %s, at %d steps; the longest took %s; seed %d; looked %d times at the processes, at most %s after the time before: %v\n",
		r.survived["points"], time.Since(r.began).Round(time.Second), steps, r.longest.Round(time.Millisecond), *crashSeed, looks, longest.Round(time.Millisecond), err)
	t.Log("\n" + out.String())
	if *crashSummary != "" {
		f, err := os.OpenFile(*crashSummary, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		require.NoError(t, err)
		_, err = f.WriteString(out.String())
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	all := r.survived["points"] + r.missed["points"] + r.failed["points"]
	require.LessOrEqual(t, r.missed["points"], max(1, all/10), "points whose step there was not")
}
