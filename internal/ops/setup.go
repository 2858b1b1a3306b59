package ops

import (
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/internal/review"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/config/live"
)

// Flags are what the command line of every component has.
type Flags struct {
	// Component is its name. Required.
	Component string
	// Kubeconfig is the file that says how the API server is reached. Empty: the
	// pod's service account.
	Kubeconfig string
	// LogLevel is debug, info, warn or error. Required.
	LogLevel string
	// Pick chooses the component's own settings. Required.
	Pick func(config.Config) config.Component
}

// Setup is what every component begins with.
type Setup struct {
	// Log is written to the standard error.
	Log *slog.Logger
	// Metrics are the component's.
	Metrics *prometheus.Registry
	// Kubernetes is how the API server is reached for the component's work, with
	// the limit of requests of the cluster's configuration.
	Kubernetes *rest.Config
	// Urgent is how it is reached for what must not wait behind the work. Each
	// client that is made of it has its own limit of requests.
	Urgent *rest.Config
	// Metadata reads the metadata of objects of any kind, with Urgent.
	Metadata metadata.Interface
	// Guard lets users with the right read the metrics.
	Guard *review.Guard
	// Settings is the cluster's configuration. The component's own log and
	// requests follow it. It must be run.
	Settings *live.Watcher
}

// Begin sets a component up.
func Begin(f Flags) (*Setup, error) {
	s := &Setup{Metrics: Registry()}
	var level *Level
	var err error
	if s.Log, level, err = Logger(os.Stderr, f.LogLevel); err != nil {
		return nil, err
	}
	if s.Urgent, err = Kubernetes(f.Kubeconfig, f.Component, s.Metrics); err != nil {
		return nil, err
	}
	if s.Guard, err = newGuard(s.Urgent, s.Log); err != nil {
		return nil, err
	}
	limiter := NewLimiter()
	s.Kubernetes = rest.CopyConfig(s.Urgent)
	s.Kubernetes.RateLimiter = limiter
	c, err := client.New(s.Urgent)
	if err != nil {
		return nil, err
	}
	if s.Metadata, err = metadata.NewForConfig(s.Urgent); err != nil {
		return nil, err
	}
	if s.Settings, err = live.New(live.Config{KubeVirts: c.KubeVirts(""), Metadata: s.Metadata, Metrics: s.Metrics, Logger: s.Log}); err != nil {
		return nil, err
	}
	s.Settings.OnChange(func() {
		own := f.Pick(s.Settings.State().Config)
		limiter.Set(own.QPS, own.Burst)
		level.Follow(own.Verbosity)
	})
	return s, nil
}

// Client makes a client of what is reached by cfg. It writes statuses as a whole while no
// other version of Podvisor may have written into them.
func (s *Setup) Client(cfg *rest.Config) (*client.Client, error) {
	c, err := client.New(cfg)
	if err != nil {
		return nil, err
	}
	c.ReplaceStatuses(s.Settings.OwnStatuses)
	return c, nil
}

// How many reviews of who reads metrics a component asks for, in a second and at once, of each
// kind. A collector of metrics costs two in a minute. Every pod can have others asked for.
const (
	reviewsPerSecond = 10
	reviewsBurst     = 20
)

// newGuard makes the guard of the metrics, whose reviews wait behind no other request.
func newGuard(cfg *rest.Config, log *slog.Logger) (*review.Guard, error) {
	cfg = Binary(cfg)
	cfg.QPS, cfg.Burst = reviewsPerSecond, reviewsBurst
	tokens, err := authenticationv1.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	access, err := authorizationv1.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return review.NewGuard(review.GuardConfig{Tokens: tokens.TokenReviews(), Access: access.SubjectAccessReviews(), Path: metricsPath, Logger: log}), nil
}
