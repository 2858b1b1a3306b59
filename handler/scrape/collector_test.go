package scrape

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// guests are VMIs whose launchers answer, hang or fail, by their names.
type guests struct {
	mu          sync.Mutex
	all         []*vmi.VirtualMachineInstance
	hang, fail  map[string]bool
	sends       map[string]bool // those that are sent to another node
	asked       []string
	busy, most  int
	afterAnswer func(name string)
}

func newGuests(names ...string) *guests {
	g := &guests{hang: map[string]bool{}, fail: map[string]bool{}, sends: map[string]bool{}}
	for _, name := range names {
		v := vmitest.New()
		v.Name, v.UID, v.Status.NodeName = name, types.UID("uid-"+name), "n1"
		g.all = append(g.all, v)
	}
	return g
}

func (g *guests) Instances() []*vmi.VirtualMachineInstance {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.all)
}

func (g *guests) Stats(ctx context.Context, of protocol.Target) (protocol.Stats, error) {
	g.mu.Lock()
	g.asked = append(g.asked, of.Name)
	g.busy++
	g.most = max(g.most, g.busy)
	hang, fail, sends := g.hang[of.Name], g.fail[of.Name], g.sends[of.Name]
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.busy--
		if g.afterAnswer != nil {
			g.afterAnswer(of.Name)
		}
	}()
	switch {
	case hang:
		<-ctx.Done()
		return protocol.Stats{}, ctx.Err()
	case fail:
		return protocol.Stats{}, errors.New("there is no domain")
	}
	s := protocol.NewStats(map[string]any{"vcpu.0.time": uint64(2e9), "vcpu.0.state": int32(1)})
	if sends {
		s.Parts = append(s.Parts, protocol.Part{Group: protocol.Job, Values: map[protocol.Stat]float64{
			protocol.JobTotal: 9, protocol.JobProcessed: 2, protocol.JobRemaining: 7, protocol.JobDirtyPages: 1, protocol.JobPageSize: 4096, protocol.JobSpeed: 5,
		}})
	}
	return s, nil
}

// remove removes a VMI.
func (g *guests) remove(name string) {
	g.all = slices.DeleteFunc(g.all, func(v *vmi.VirtualMachineInstance) bool { return v.Name == name })
}

// takeAsked are the names of those that were asked since it was called last.
func (g *guests) takeAsked() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	asked := g.asked
	g.asked = nil
	return asked
}

// scraper scrapes a Collector, and returns the names of VMIs that have series, and the text.
func scraper(t *testing.T, c Config) func() (names []string, text string) {
	t.Helper()
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(New(c)))
	h := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return func() (names []string, text string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		require.Equal(t, 200, w.Code, "%s", w.Body)
		for line := range strings.Lines(w.Body.String()) {
			if _, after, ok := strings.Cut(line, `,name="`); ok {
				name, _, _ := strings.Cut(after, `"`)
				names = append(names, name)
			}
		}
		return names, w.Body.String()
	}
}

func TestSeriesAreServedAsPrometheusReadsThem(t *testing.T) {
	t.Parallel()
	g := newGuests("a", "b")
	g.all[1].Labels = map[string]string{"kubevirt.io/domain": "of b"}
	_, text := scraper(t, Config{Guests: g})()
	require.Equal(t, `# HELP kubevirt_vmi_vcpu_seconds_total Seconds that a processor of the guest has run. id is its number from 0 on, state is what it does now: running, blocked, offline or unknown. Sum over state before you compare: another state is another series of the same count.
# TYPE kubevirt_vmi_vcpu_seconds_total counter
kubevirt_vmi_vcpu_seconds_total{id="0",name="a",namespace="default",node="n1",state="running"} 2
kubevirt_vmi_vcpu_seconds_total{id="0",kubernetes_vmi_label_kubevirt_io_domain="of b",name="b",namespace="default",node="n1",state="running"} 2
`, text)
}

func TestTheSeriesOfAMigrationAreThereWhileTheGuestIsSent(t *testing.T) {
	t.Parallel()
	g := newGuests("a", "b")
	scrape := scraper(t, Config{Guests: g, Fresh: time.Nanosecond})
	moving := func() (found []string) {
		_, text := scrape()
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "kubevirt_vmi_migration_") {
				found = append(found, strings.TrimSpace(line))
			}
		}
		return found
	}
	require.Empty(t, moving())
	g.sends["b"] = true
	const b = `{name="b",namespace="default",node="n1"} `
	require.Equal(t, []string{
		"kubevirt_vmi_migration_data_bytes_total" + b + "9", "kubevirt_vmi_migration_data_processed_bytes" + b + "2", "kubevirt_vmi_migration_data_remaining_bytes" + b + "7",
		"kubevirt_vmi_migration_dirty_memory_rate_bytes" + b + "4096", "kubevirt_vmi_migration_memory_transfer_rate_bytes" + b + "5",
	}, moving())
	delete(g.sends, "b") // it stays, or the job is over and the domain not yet
	require.Empty(t, moving())
	g.sends["b"] = true
	require.Len(t, moving(), 5, "it is sent again")
	g.remove("b") // it runs on the other node
	require.Empty(t, moving())
}

func TestALauncherThatHangsCostsItsOwnSeries(t *testing.T) {
	t.Parallel()
	g := newGuests("hangs", "a", "fails", "b")
	g.hang["hangs"], g.fail["fails"] = true, true
	scrape := scraper(t, Config{Guests: g, PerVMI: 50 * time.Millisecond, Fresh: time.Nanosecond})
	for range 3 {
		began := time.Now()
		names, text := scrape()
		require.Equal(t, []string{"a", "b"}, names)
		require.Less(t, time.Since(began), time.Minute, "it is not waited for")
		require.Contains(t, text, `
podvisor_vmi_stats_failed{name="fails",namespace="default"} 1
podvisor_vmi_stats_failed{name="hangs",namespace="default"} 1
`)
	}
	g.mu.Lock()
	delete(g.hang, "hangs")
	g.mu.Unlock()
	names, text := scrape()
	require.Equal(t, []string{"a", "b", "hangs"}, names, "it answers again")
	require.NotContains(t, text, `podvisor_vmi_stats_failed{name="hangs"`)
}

func TestLaunchersThatHangDoNotKeepTheOthersFromBeingAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 30 {
			names = append(names, fmt.Sprintf("hangs%02d", i))
		}
		g := newGuests(append(names, "last")...)
		for _, name := range names {
			g.hang[name] = true
		}
		collect := scraper(t, Config{Guests: g, PerVMI: 100 * time.Millisecond, InAll: 150 * time.Millisecond, Fresh: time.Nanosecond})
		scrape := func() []string {
			time.Sleep(time.Nanosecond) // no answer counts any more
			began := time.Now()
			served, _ := collect()
			require.Equal(t, 150*time.Millisecond, time.Since(began), "they are not waited for")
			return served
		}
		for i := 0; len(scrape()) == 0; i++ {
			require.Less(t, i, 4, "each scrape asks those first that were not asked")
		}
		hung := func() []string { // in their order
			return slices.DeleteFunc(g.takeAsked(), func(name string) bool { return name == "last" })
		}
		hung()
		require.Equal(t, []string{"last"}, scrape())
		require.Equal(t, 8, g.most)
		first := hung()[0]
		scrape()
		require.NotContains(t, hung()[:8], first, "those that hang take turns")
	})
}

func TestHowLongAScrapeTakesAndAnAnswerCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuests("a", "hangs")
		g.hang["hangs"] = true
		scrape := scraper(t, Config{Guests: g})
		took := func() time.Duration {
			began := time.Now()
			scrape()
			return time.Since(began)
		}
		require.Equal(t, 2*time.Second, took(), "one that hangs")
		g.takeAsked()
		time.Sleep(2900 * time.Millisecond)
		require.Zero(t, took(), "the answers are shared")
		require.Empty(t, g.takeAsked())
		time.Sleep(200 * time.Millisecond)
		require.Zero(t, took())
		require.Equal(t, []string{"a"}, g.takeAsked(), "its answer is older than 5 s")
		time.Sleep(2 * time.Second)
		require.Equal(t, 2*time.Second, took())
		require.Equal(t, []string{"hangs"}, g.takeAsked())

		var names []string
		for i := range 100 {
			names = append(names, fmt.Sprint("hangs-", i))
		}
		g = newGuests(names...)
		for _, name := range names {
			g.hang[name] = true
		}
		scrape = scraper(t, Config{Guests: g})
		require.Equal(t, 5*time.Second, took(), "all hang")
		require.Equal(t, 8, g.most)
		require.Len(t, g.takeAsked(), 3*8)
	})
}

func TestScrapesThatFollowCloselyShareTheAnswers(t *testing.T) {
	t.Parallel()
	g := newGuests("a", "hangs")
	g.hang["hangs"] = true
	c := Config{Guests: g, PerVMI: 20 * time.Millisecond, Fresh: time.Hour}
	scrape := scraper(t, c)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { scrape() })
	}
	wg.Wait()
	require.ElementsMatch(t, []string{"a", "hangs"}, g.takeAsked(), "also that a launcher does not answer is shared")

	c.Fresh = time.Nanosecond
	scrape = scraper(t, c)
	scrape()
	scrape()
	require.Len(t, g.takeAsked(), 4)
}

func TestNoSeriesOutlivesItsVMI(t *testing.T) {
	t.Parallel()
	g := newGuests("a", "b", "c")
	scrape := scraper(t, Config{Guests: g, Fresh: time.Hour})
	names, _ := scrape()
	require.Equal(t, []string{"a", "b", "c"}, names)
	g.mu.Lock()
	g.remove("b")
	again := vmitest.New()
	again.Name, again.UID = "c", "another"
	g.remove("c")
	g.fail["c"] = true
	g.all = append(g.all, again)
	g.mu.Unlock()
	names, _ = scrape()
	require.Equal(t, []string{"a"}, names, "an answer that is shared is of no other VMI of the name")

	g = newGuests("a", "ends")
	g.afterAnswer = func(string) { g.remove("ends") }
	names, _ = scraper(t, Config{Guests: g})()
	require.Equal(t, []string{"a"}, names, "it ended while the launchers were asked")
}

func TestASeriesThatIsNotValidIsLeftOut(t *testing.T) {
	t.Parallel()
	g := newGuests("a", "b")
	g.all[0].Labels = map[string]string{"app": "\xff"}
	names, _ := scraper(t, Config{Guests: g})()
	require.Equal(t, []string{"b"}, names)
}

func Example() {
	registry := prometheus.NewRegistry()
	registry.MustRegister(New(Config{Guests: newGuests("hello")}))
	families, _ := registry.Gather()
	fmt.Println(families[0].GetName(), families[0].GetMetric()[0].GetCounter().GetValue())
	// Output: kubevirt_vmi_vcpu_seconds_total 2
}
