package node

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

const (
	// defaultPeriod is the time between two beats, give or take a fifth, so that
	// the nodes of a cluster that started at once do not beat at once.
	defaultPeriod = time.Minute
	// defaultPatience is longer than the kubelet takes to answer a plugin.
	defaultPatience = 5 * time.Second
	// retryPeriod is the time after a beat that failed.
	retryPeriod = 2 * time.Second
	// patchTimeout is how long the API server may take.
	patchTimeout = 5 * time.Second
)

// Config is what a Heart needs.
type Config struct {
	// Nodes writes node objects. Required.
	Nodes corev1.NodeInterface
	// Name is the node's name. Required.
	Name string
	// Schedulable says whether machines can run here now. Required.
	Schedulable func() bool
	// Period is the time between two beats. 0: a minute.
	Period time.Duration
	// Patience is how long the first beat waits for the node to become
	// schedulable. 0: five seconds.
	Patience time.Duration
	// Logger takes a line for each change of the label and each beat that
	// fails. Nil: nothing is logged.
	Logger *slog.Logger
}

// Heart tells the cluster about its node.
type Heart struct {
	config  Config
	changed chan struct{}
}

// New makes a Heart. It beats when it runs.
func New(c Config) *Heart {
	if c.Period == 0 {
		c.Period = defaultPeriod
	}
	if c.Patience == 0 {
		c.Patience = defaultPatience
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Heart{config: c, changed: make(chan struct{}, 1)}
}

// Changed says that Schedulable may answer something else than before. It does
// not block and may be called at any time.
func (h *Heart) Changed() {
	select {
	case h.changed <- struct{}{}:
	default: // one that is not yet seen says the same
	}
}

// Run beats until ctx ends, and then once more to take the node back. The first
// beat is given a moment until the node is schedulable: a handler that starts
// again is so at once, and the label shall not waver for that.
func (h *Heart) Run(ctx context.Context) error {
	told := "false"
	if !h.config.Schedulable() {
		h.wait(ctx, h.config.Patience, told)
	}
	for {
		now, wait := strconv.FormatBool(h.config.Schedulable()), h.next()
		if err := h.beat(ctx, now); err != nil {
			if ctx.Err() == nil {
				h.config.Logger.Warn("cannot tell that this node is alive, will try again", "node", h.config.Name, "err", err)
			}
			wait = retryPeriod
		} else if now != told {
			h.config.Logger.Info("told whether machines can run here", "node", h.config.Name, "schedulable", now)
			told = now
		}
		if !h.wait(ctx, wait, told) {
			break
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), patchTimeout)
	defer cancel()
	return h.beat(last, "false")
}

// next is the time until the next beat.
func (h *Heart) next() time.Duration {
	return time.Duration(float64(h.config.Period) * (0.8 + 0.4*rand.Float64()))
}

// wait returns when the next beat is due, or false if there is none.
func (h *Heart) wait(ctx context.Context, d time.Duration, told string) bool {
	due := time.NewTimer(d)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-due.C:
			return true
		case <-h.changed:
			if strconv.FormatBool(h.config.Schedulable()) != told {
				return true
			}
		}
	}
}

func (h *Heart) beat(ctx context.Context, schedulable string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"labels":      map[string]string{vmi.SchedulableLabel: schedulable},
		"annotations": map[string]string{vmi.HeartbeatAnnotation: time.Now().UTC().Format(time.RFC3339)},
	}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patchTimeout)
	defer cancel()
	if _, err := h.config.Nodes.Patch(ctx, h.config.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("patch node %s: %w", h.config.Name, err)
	}
	return nil
}
