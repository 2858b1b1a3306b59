package node

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

const (
	// defaultPeriod is the time between two patches, give or take a fifth, so that
	// the nodes of a cluster that started at once do not write at once.
	defaultPeriod = time.Minute
	// defaultStartDelay is longer than the kubelet takes to register a plugin.
	defaultStartDelay = 5 * time.Second
	// retryPeriod is the time after a patch that failed.
	retryPeriod = 2 * time.Second
	// patchTimeout is how long the API server may take.
	patchTimeout = 5 * time.Second
)

// Config is the configuration of a Heartbeat.
type Config struct {
	// Nodes writes node objects. Required.
	Nodes corev1.NodeInterface
	// Name is the node's name. Required.
	Name string
	// Schedulable returns whether VMIs can run here now. Required.
	Schedulable func() bool
	// Labels returns the further labels that the node is to have, of those that are
	// Owned; the others of these are removed. Nil, or a nil map: they stay as they
	// are, as they do on a node with the annotation that says so.
	Labels func() map[string]string
	// Owned says that a label is one of those that Labels returns. Nil: none is.
	Owned func(key string) bool
	// Annotations are further annotations of the node, which are written at once when it
	// runs, and removed when Podvisor is uninstalled. An empty one is removed. Nil: there are
	// none.
	Annotations map[string]string
	// Uninstalled returns, at the end, whether the labels and the annotation are to be
	// removed, and not the label to become false. Nil: they are not.
	Uninstalled func(context.Context) bool
	// Period is the time between two patches. 0: a minute.
	Period time.Duration
	// StartDelay is how long the first patch waits for the node to become
	// schedulable. 0: five seconds.
	StartDelay time.Duration
	// Logger takes a line for each change of the label and each patch that fails.
	// Nil: nothing is logged.
	Logger *slog.Logger
}

// Heartbeat keeps the label and the annotation of its node.
type Heartbeat struct {
	config  Config
	changed chan struct{}
	// desired are the further labels that the node had to have when it was written
	// last, and has those that it has.
	desired, has map[string]string
	// skip says that they stay as they are.
	skip bool
}

// New makes a Heartbeat. It writes nothing until it runs.
func New(c Config) *Heartbeat {
	if c.Period == 0 {
		c.Period = defaultPeriod
	}
	if c.StartDelay == 0 {
		c.StartDelay = defaultStartDelay
	}
	if c.Labels == nil {
		c.Labels = func() map[string]string { return nil }
	}
	if c.Owned == nil {
		c.Owned = func(string) bool { return false }
	}
	if c.Uninstalled == nil {
		c.Uninstalled = func(context.Context) bool { return false }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Heartbeat{config: c, changed: make(chan struct{}, 1)}
}

// Changed notes that the result of Schedulable or Labels may have changed. It does not block
// and may be called at any time.
func (h *Heartbeat) Changed() {
	select {
	case h.changed <- struct{}{}:
	default: // one that is not yet received means the same
	}
}

// removed is in the place of the label's value where there is to be no label.
const removed = ""

// Run writes until ctx ends, and then the label false, or removes it if Uninstalled
// says so. The first patch waits for StartDelay if the node is not schedulable: after
// a restart of the handler it is within a moment, and the label is not changed for
// that.
func (h *Heartbeat) Run(ctx context.Context) error {
	written := "false"
	if len(h.config.Annotations) > 0 {
		annotations := map[string]any{}
		annotate(annotations, h.config.Annotations)
		if err := h.send(ctx, map[string]any{"annotations": annotations}); err != nil && ctx.Err() == nil {
			h.config.Logger.Warn("annotate the node, will retry", "node", h.config.Name, "err", err)
		}
	}
	if !h.config.Schedulable() {
		h.wait(ctx, h.config.StartDelay, written)
	}
	for {
		now, wait := strconv.FormatBool(h.config.Schedulable()), h.next()
		if err := h.write(ctx, now); err != nil {
			if ctx.Err() == nil {
				h.config.Logger.Warn("patch the node, will retry", "node", h.config.Name, "err", err)
			}
			wait = retryPeriod
		} else if now != written {
			h.config.Logger.Info("wrote whether VMIs can run here", "node", h.config.Name, "schedulable", now)
			written = now
		}
		if !h.wait(ctx, wait, written) {
			break
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), patchTimeout)
	defer cancel()
	if h.config.Uninstalled(last) {
		return h.patch(last, removed, h.config.Annotations)
	}
	return h.patch(last, "false", nil)
}

// next is the time until the next patch.
func (h *Heartbeat) next() time.Duration {
	return time.Duration(float64(h.config.Period) * (0.8 + 0.4*rand.Float64()))
}

// wait returns true when the next patch is due, or false when ctx ends.
func (h *Heartbeat) wait(ctx context.Context, d time.Duration, written string) bool {
	due := time.NewTimer(d)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-due.C:
			return true
		case <-h.changed:
			if strconv.FormatBool(h.config.Schedulable()) != written || !maps.Equal(h.config.Labels(), h.desired) {
				return true
			}
		}
	}
}

// write writes that the node is alive, and its further labels if they are not those
// that it is to have.
func (h *Heartbeat) write(ctx context.Context, schedulable string) error {
	if err := h.patch(ctx, schedulable, h.config.Annotations); err != nil {
		return err
	}
	h.desired = h.config.Labels()
	change := difference(h.desired, h.has)
	if len(change) == 0 || h.skip {
		return nil
	}
	if err := h.send(ctx, map[string]any{"labels": change}); err != nil {
		return err
	}
	h.config.Logger.Info("wrote what processors guests can have", "node", h.config.Name, "labels", len(h.desired), "changed", len(change))
	return nil
}

// difference makes the labels that a node has those that are desired. Nil: any are.
func difference(desired, has map[string]string) map[string]any {
	change := map[string]any{}
	if desired == nil {
		return change
	}
	for k, v := range desired {
		if has[k] != v {
			change[k] = v
		}
	}
	for k := range has {
		if _, ok := desired[k]; !ok {
			change[k] = nil // it is removed
		}
	}
	return change
}

// patch writes the label and the annotations, with the further ones that are given: at the
// end these may be those of the next handler already.
func (h *Heartbeat) patch(ctx context.Context, schedulable string, further map[string]string) error {
	annotations := map[string]any{}
	if schedulable != removed {
		annotations[vmi.HeartbeatAnnotation] = time.Now().UTC().Format(time.RFC3339)
		annotate(annotations, further)
		return h.send(ctx, map[string]any{"labels": map[string]any{vmi.SchedulableLabel: schedulable}, "annotations": annotations})
	}
	annotations[vmi.HeartbeatAnnotation] = nil
	for k := range further {
		annotations[k] = nil
	}
	labels := difference(map[string]string{}, h.has)
	labels[vmi.SchedulableLabel] = nil
	return h.send(ctx, map[string]any{"labels": labels, "annotations": annotations})
}

// annotate adds annotations to a patch, in which null removes.
func annotate(patch map[string]any, with map[string]string) {
	for k, v := range with {
		if patch[k] = nil; v != "" {
			patch[k] = v
		}
	}
}

// send patches the node's metadata and notes the labels that it has then.
func (h *Heartbeat) send(ctx context.Context, metadata map[string]any) error {
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patchTimeout)
	defer cancel()
	n, err := h.config.Nodes.Patch(ctx, h.config.Name, types.MergePatchType, body, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("patch node %s: %w", h.config.Name, err)
	}
	h.has, h.skip = maps.Clone(n.Labels), n.Annotations[vmi.SkipNodeAnnotation] == "true"
	maps.DeleteFunc(h.has, func(k, _ string) bool { return !h.config.Owned(k) })
	return nil
}
