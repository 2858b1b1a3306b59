package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/podvisor/podvisor/e2e/simulate"
)

// handled is what the VMIs of one node cost its virt-handler.
type handled struct {
	n                  int
	start, idle, ended handlerStep
}

// handlerStep is what virt-handler used in a phase.
type handlerStep struct {
	seconds   float64
	processor time.Duration
	rss       int64 // more at the end
	requests  counts
}

// handlers measures a real virt-handler: all VMIs of its node start at once, run, and are
// deleted. Their launchers have network namespaces, in which the handler binds their networks.
func (r *rig) handlers(ctx context.Context, n int) (h handled, err error) {
	const node = "handled"
	k, end, err := r.simulate(ctx, []string{node}, simulate.Config{Namespaces: true}, false)
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, end()) }()
	p, err := r.startHandler(ctx, node, k.Pods(node))
	if err != nil {
		return h, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute+time.Duration(n)*time.Second)
	defer cancel()
	vmis, err := kindNamed("vmi")
	if err != nil {
		return h, err
	}
	create := func(ctx context.Context, r *rig, name string) error { return vmis.create(ctx, r, name, 1) }
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	all := r.see(watching, vmis)
	if err := r.untilQuiet(ctx); err != nil {
		return h, err
	}
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("handled-%d", i))
	}
	during := func(do func() error) (s handlerStep, err error) {
		before, err := r.now()
		if err != nil {
			return s, err
		}
		time0, rss0, _ := p.use()
		if err := do(); err != nil {
			return s, fmt.Errorf("%w; %s", err, r.logEnd("virt-handler"))
		}
		s.seconds = time.Since(before.at).Seconds()
		if err := r.untilQuiet(ctx); err != nil {
			return s, err
		}
		after, err := r.now()
		time1, rss1, _ := p.use()
		s.processor, s.rss, s.requests = time1-time0, rss1-rss0, after.since(before, 0).requests["virt-handler"]
		return s, err
	}
	h.n = n
	h.start, err = during(func() error {
		return errors.Join(r.forAll(ctx, names, create), all.until(ctx, n, n))
	})
	if err != nil {
		return h, fmt.Errorf("create: %w", err)
	}
	h.idle, err = during(func() error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(r.Idle):
			return nil
		}
	})
	if err != nil {
		return h, err
	}
	h.ended, err = during(func() error {
		return errors.Join(r.forAll(ctx, names, vmis.remove), all.until(ctx, 0, 0))
	})
	return h, err
}

// startHandler starts virt-handler for a node, whose devices it does not offer.
func (r *rig) startHandler(ctx context.Context, node, pods string) (*program, error) {
	token, err := r.token(ctx, "virt-handler", node)
	if err != nil {
		return nil, err
	}
	plugins, cdi := filepath.Join(r.dir, "device-plugins"), filepath.Join(r.dir, "cdi")
	if err := errors.Join(os.MkdirAll(plugins, 0o755), os.MkdirAll(cdi, 0o755)); err != nil {
		return nil, err
	}
	return r.startWith("virt-handler", token, []string{"GOMEMLIMIT=200MiB"}, "virt-handler",
		"--node-name", node, "--kubelet-pods", pods, "--device-plugins", plugins, "--cdi", cdi, "--kvm", "no", "--allow-emulation",
		"--listen", "127.0.0.1:9443", "--streams", "127.0.0.1:9186")
}
