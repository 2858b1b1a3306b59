package subresource

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/version"
)

const (
	// checkEvery is how long an answer of the API server about its version counts: anyone
	// may ask for it.
	checkEvery = 10 * time.Second
	// mostToCheck is how long a request waits for that answer.
	mostToCheck = 5 * time.Second
)

// connected and failed are the words for the connection to the API server.
const (
	connected = "ok"
	failed    = "failed"
)

// health is the answer of healthz.
type health struct {
	APIServer     apiServer `json:"apiserver"`
	ConfigVersion string    `json:"config-resource-version"`
}

type apiServer struct {
	Connectivity string        `json:"connectivity"`
	Version      *version.Info `json:"version,omitempty"`
	Error        string        `json:"error,omitempty"`
}

// checks asks the API server for its version, once at a time.
type checks struct {
	mu   sync.Mutex
	last *check
}

// check is one question and its answer.
type check struct {
	at      time.Time
	done    chan struct{}
	version *version.Info
	err     error
}

// check is the answer that counts now. Whoever asks while it is awaited waits for it too.
func (c *checks) check(ask func() (*version.Info, error)) *check {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.last; l != nil {
		select {
		case <-l.done:
			if time.Since(l.at) < checkEvery {
				return l
			}
		default:
			return l
		}
	}
	l := &check{at: time.Now(), done: make(chan struct{})}
	c.last = l
	go func() {
		defer close(l.done)
		l.version, l.err = ask()
	}()
	return l
}

// healthz says whether the API server answers.
func (s *Server) healthz() health {
	h := health{APIServer: apiServer{Connectivity: failed}, ConfigVersion: s.ConfigVersion()}
	c := s.checks.check(s.Kube.Discovery().ServerVersion)
	err := errors.New("it does not answer")
	select {
	case <-c.done:
		err = c.err
	case <-time.After(mostToCheck):
	}
	if err != nil {
		h.APIServer.Error = cut(err.Error())
		return h
	}
	h.APIServer.Connectivity, h.APIServer.Version = connected, c.version
	return h
}
