package scrape

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/handler/metrics"
	served "github.com/podvisor/podvisor/internal/metrics"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// Guests are the VMIs of a node.
type Guests interface {
	// Instances are the VMIs whose guests run.
	Instances() []*vmi.VirtualMachineInstance
	// Stats asks the launcher of a VMI what it has counted. They are sanitized. It returns
	// when ctx ends.
	Stats(ctx context.Context, of protocol.Target) (protocol.Stats, error)
}

// Config is what a [Collector] needs.
type Config struct {
	// Guests are the VMIs of the node. Required.
	Guests Guests
	// AtOnce is how many launchers are asked at the same time. 0: 8.
	AtOnce int
	// PerVMI is how long one of them may take, and InAll all of them. 0: 2 s and 5 s.
	PerVMI, InAll time.Duration
	// Fresh is how long an answer counts. 0: 5 s.
	Fresh time.Duration
	// Logger takes a line for each launcher that does not answer. Nil: nothing is logged.
	Logger *slog.Logger
}

// Collector serves the series of the VMIs of a node. Its methods may be called from any
// goroutine; scrapes at the same time wait for one collection.
type Collector struct {
	config Config

	mu      sync.Mutex
	answers map[types.UID]answer // of VMIs that there are
}

// answer is what a launcher answered. It has failed if it did not.
type answer struct {
	at     time.Time
	stats  protocol.Stats
	failed bool
}

// New makes a Collector. It asks nothing until it is collected.
func New(c Config) *Collector {
	c.AtOnce = cmp.Or(c.AtOnce, 8)
	c.PerVMI = cmp.Or(c.PerVMI, 2*time.Second)
	c.InAll = cmp.Or(c.InAll, 5*time.Second)
	c.Fresh = cmp.Or(c.Fresh, 5*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Collector{config: c, answers: map[types.UID]answer{}}
}

// Describe implements prometheus.Collector. Series have the labels of their VMIs, so they
// are not known before.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ask(c.due(c.config.Guests.Instances()))
	// The list is read again: a VMI may have ended in the meantime.
	sender := served.NewSender(out)
	for _, v := range c.config.Guests.Instances() {
		a, ok := c.answers[v.UID]
		if !ok {
			continue
		}
		for _, s := range metrics.Of(metrics.Observation{Instance: v, Stats: a.stats, Failed: a.failed}) {
			if err := sender.Send(s); err != nil {
				c.config.Logger.Warn("a series is left out", "vmi", v.Namespace+"/"+v.Name, "err", err)
			}
		}
	}
}

// due are the VMIs whose launchers are to be asked: those that did not answer last, the one
// that was asked longest ago first. The answers of VMIs that are gone are dropped.
func (c *Collector) due(all []*vmi.VirtualMachineInstance) []*vmi.VirtualMachineInstance {
	kept := map[types.UID]answer{}
	var due, failed []*vmi.VirtualMachineInstance
	for _, v := range all {
		a, ok := c.answers[v.UID]
		if ok {
			kept[v.UID] = a
		}
		switch {
		case ok && time.Since(a.at) < c.config.Fresh:
		case a.failed:
			failed = append(failed, v)
		default:
			due = append(due, v)
		}
	}
	c.answers = kept
	slices.SortStableFunc(failed, func(a, b *vmi.VirtualMachineInstance) int { return kept[a.UID].at.Compare(kept[b.UID].at) })
	return slices.Concat(due, failed)
}

// ask asks the launchers, in this order, and notes their answers. One that could not be
// asked in time has none.
func (c *Collector) ask(due []*vmi.VirtualMachineInstance) {
	ctx, cancel := context.WithTimeout(context.Background(), c.config.InAll)
	defer cancel()
	answers := make([]answer, len(due))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(c.config.AtOnce, len(due)) {
		wg.Go(func() {
			for i := range next {
				answers[i] = c.askOne(ctx, due[i])
			}
		})
	}
	for i := 0; i < len(due) && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	for i, v := range due {
		switch {
		case !answers[i].at.IsZero():
			c.answers[v.UID] = answers[i]
		case !c.answers[v.UID].failed:
			delete(c.answers, v.UID)
		}
	}
}

func (c *Collector) askOne(ctx context.Context, v *vmi.VirtualMachineInstance) answer {
	ctx, cancel := context.WithTimeout(ctx, c.config.PerVMI)
	defer cancel()
	stats, err := c.config.Guests.Stats(ctx, protocol.Target{Namespace: v.Namespace, Name: v.Name, UID: v.UID})
	if err != nil {
		c.config.Logger.Debug("no statistics of a VMI", "vmi", v.Namespace+"/"+v.Name, "err", err)
	}
	return answer{at: time.Now(), stats: stats, failed: err != nil}
}
