package live

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/internal/metrics"
	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/informer"
	"github.com/podvisor/podvisor/vmi/config"
)

// Config is what a Watcher needs.
type Config struct {
	// KubeVirts are those of all namespaces, as client.Client.KubeVirts("") reads them.
	// Required.
	KubeVirts client.Watched[*vmi.KubeVirt, *vmi.KubeVirtList]
	// Metadata reads the definitions of kinds, to recognise an installation of
	// KubeVirt itself. Nil, or without the permission: it is not looked for.
	Metadata metadata.Interface
	// Metrics takes the number of KubeVirts that cannot be decoded, while Run runs. Nil:
	// there are none.
	Metrics prometheus.Registerer
	// Logger takes a line for each change. Nil: nothing is logged.
	Logger *slog.Logger
}

// Watcher knows the configuration of a cluster. It is made by New and run once;
// its other methods may be called at any time and from any goroutine.
type Watcher struct {
	log       *slog.Logger
	metrics   prometheus.Registerer
	once      reconcile.Once
	kubevirts informer.Informer[*vmi.KubeVirt]
	sources   []*source

	mu      sync.Mutex
	state   config.State
	foreign string
	same    bool
	changed []*func()
}

// New makes a Watcher. It touches nothing until it runs.
func New(c Config) (*Watcher, error) {
	if err := reconcile.Missing("live.Config", map[string]bool{"KubeVirts": c.KubeVirts == nil}); err != nil {
		return nil, err
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	kubevirts, err := informer.NewFiltered(c.KubeVirts, informer.Selection{})
	if err != nil {
		return nil, err
	}
	w := &Watcher{log: c.Logger, metrics: c.Metrics, kubevirts: kubevirts}
	err = w.add(&source{informer: w.kubevirts})
	if c.Metadata != nil {
		for _, name := range installations() {
			err = errors.Join(err, w.add(&source{informer: definition(c.Metadata, name), optional: true}))
		}
	}
	return w, err
}

// add makes the source one of those that the state follows from.
func (w *Watcher) add(s *source) error {
	s.log, s.changed = w.log, w.update
	w.sources = append(w.sources, s)
	return s.prepare()
}

// Run keeps the configuration up to date until ctx ends. It is called once: a second call
// is an error.
func (w *Watcher) Run(ctx context.Context) error {
	if err := w.once.Begin("watcher of the configuration"); err != nil {
		return err
	}
	unregister, err := metrics.Register(w.metrics, metrics.Unreadable(vmi.KubeVirts.Plural, w.Unreadable))
	if err != nil {
		return err
	}
	defer unregister()
	ctx = reconcile.WithClientLog(ctx, w.log)
	var wg sync.WaitGroup
	for _, s := range w.sources {
		wg.Go(func() { s.informer.RunWithContext(ctx) })
		wg.Go(func() {
			if cache.WaitForCacheSync(ctx.Done(), s.known) {
				w.update()
			}
		})
	}
	wg.Wait()
	return nil
}

// update decides which configuration is in force, and calls what was given to
// OnChange.
func (w *Watcher) update() {
	if !w.Known() {
		return
	}
	w.mu.Lock()
	next, foreign := config.NextState(w.state, w.KubeVirts()), w.lookForeign()
	switch {
	case foreign == w.foreign:
	case foreign != "":
		w.log.Warn("suspend the work", "reason", foreign)
	default:
		w.log.Info("resume the work", "reason", "KubeVirt itself is not installed any more")
	}
	if name(next) != name(w.state) || generation(next) != generation(w.state) {
		w.report(next)
	}
	w.state, w.foreign, w.same = next, foreign, w.lookStatuses()
	changed := w.changed
	w.mu.Unlock()
	for _, f := range changed {
		(*f)()
	}
}

// report logs which configuration is in force.
func (w *Watcher) report(s config.State) {
	log := w.log.With("kubevirt", name(s), "generation", generation(s), "inForce", s.Generation)
	if err := s.Faults.ToAggregate(); err != nil {
		log.Warn("the configuration cannot be used, an earlier one or the default is in force", "err", err)
		return
	}
	log.Info("configured")
}

func name(s config.State) string {
	if s.KubeVirt == nil {
		return ""
	}
	return cache.MetaObjectToName(s.KubeVirt).String()
}

func version(s config.State) string {
	if s.KubeVirt == nil {
		return ""
	}
	return s.KubeVirt.ResourceVersion
}

func generation(s config.State) int64 {
	if s.KubeVirt == nil {
		return 0
	}
	return s.KubeVirt.Generation
}

// Known says that the configuration is known, even if it is that there is none.
func (w *Watcher) Known() bool {
	for _, s := range w.sources {
		if !s.known() {
			return false
		}
	}
	return true
}

// Wait waits until the configuration is known. It returns false if ctx ends
// before.
func (w *Watcher) Wait(ctx context.Context) bool {
	if !cache.WaitForCacheSync(ctx.Done(), w.Known) {
		return false
	}
	w.update()
	return true
}

// State is which configuration is in force.
func (w *Watcher) State() config.State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

// Config is the configuration in force.
func (w *Watcher) Config() config.Config { return w.State().Config }

// Ready says why nothing can be done in the cluster, if nothing can: its
// configuration is not known yet, or KubeVirt itself is installed. Starting the
// process again would not help.
func (w *Watcher) Ready() error {
	if !w.Known() {
		return errors.New("the configuration of the cluster is not known yet")
	}
	if why := w.OtherInstallation(); why != "" {
		return errors.New(why)
	}
	return nil
}

// OtherInstallation says that KubeVirt itself is installed, in a sentence, or is "".
func (w *Watcher) OtherInstallation() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.foreign
}

// OwnStatuses reports whether the statuses of all kinds have the same fields in the cluster
// as in this version: then nothing of a status is lost that is written as a whole. It is
// false while that is not known, and while two versions of Podvisor meet.
func (w *Watcher) OwnStatuses() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.same
}

// KubeVirts are all KubeVirts of the cluster, or none while they are not known.
// They are shared: do not change them.
func (w *Watcher) KubeVirts() []*vmi.KubeVirt {
	if !w.Known() {
		return nil
	}
	all, _ := w.kubevirts.Lister().List(labels.Everything()) // it never fails
	return all
}

// Unreadable is how many KubeVirts cannot be decoded.
func (w *Watcher) Unreadable() int { return len(w.kubevirts.Lister().Unreadable()) }

// OnChange has f called whenever the state, or what OtherInstallation says, may be
// another, by the goroutine that found out: it must not block. What is returned ends that;
// a call that has begun may still be made.
func (w *Watcher) OnChange(f func()) (remove func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// The slice may be read without the lock, so it is replaced.
	w.changed = append(slices.Clone(w.changed), &f)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.changed = slices.DeleteFunc(slices.Clone(w.changed), func(g *func()) bool { return g == &f })
	}
}

// Facts are what a component's health says of the configuration.
func (w *Watcher) Facts() map[string]string {
	f := map[string]string{"config-resource-version": version(w.State())}
	if why := w.OtherInstallation(); why != "" {
		f["suspended"] = why
	}
	return f
}
