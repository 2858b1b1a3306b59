package scale

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/e2e/simulate"
)

// Measure measures all that the configuration says, and prints a table. The cluster is removed in
// the end.
func Measure(ctx context.Context, c Config) (err error) {
	var chosen []kind
	for _, name := range c.Kinds {
		k, err := kindNamed(name)
		if err != nil {
			return err
		}
		chosen = append(chosen, k)
	}
	r, err := up(ctx, c)
	defer func() {
		r.keepLogs()
		err = errors.Join(err, r.down(context.WithoutCancel(ctx)))
	}()
	if err != nil {
		return err
	}
	all, err := r.many(ctx, chosen)
	table(c.Out, all)
	if err != nil {
		return err
	}
	if c.Handlers > 0 {
		h, err := r.handlers(ctx, c.Handlers)
		if err != nil {
			return fmt.Errorf("handlers: %w", err)
		}
		handlerTable(c.Out, h)
	}
	return nil
}

// many measures all kinds and counts, with nodes enough for the largest.
func (r *rig) many(ctx context.Context, chosen []kind) ([]measured, error) {
	most := 0
	for _, n := range r.Counts {
		most = max(most, n)
	}
	if most == 0 {
		return nil, nil
	}
	var nodes []string
	for i := range (most + r.PerNode - 1) / r.PerNode {
		nodes = append(nodes, fmt.Sprintf("node-%d", i))
	}
	_, end, err := r.simulate(ctx, nodes, simulate.Config{}, true)
	if err != nil {
		return nil, err
	}
	var all []measured
	for _, k := range chosen {
		for _, n := range r.Counts {
			m, err := r.measure(ctx, k, n)
			if m.start.requests != nil {
				all = append(all, m) // also if what follows failed
				details(r.Out, m)
			}
			if err != nil {
				return all, errors.Join(fmt.Errorf("%d of %s: %w", n, k.name, err), end())
			}
		}
	}
	return all, end()
}

// simulate runs nodes, with handlers if these are to be simulated too, until end is called.
func (r *rig) simulate(ctx context.Context, nodes []string, c simulate.Config, handlers bool) (k *simulate.Kubelets, end func() error, err error) {
	if c.Kube, err = kubernetes.NewForConfig(r.as("kubelet")); err != nil {
		return nil, nil, err
	}
	c.Nodes, c.Collect, c.Dir, c.Home = nodes, r.meta, filepath.Join(r.dir, "pods"), home
	if k, err = simulate.NewKubelets(c); err != nil {
		return nil, nil, err
	}
	if err := k.Register(ctx); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	failed := make([]error, 2)
	wg.Go(func() { failed[0] = k.Run(ctx) })
	if handlers {
		h := simulate.Handlers{Nodes: nodes, Pods: k.Pods, Access: func(node string) (*rest.Config, error) {
			token, err := r.token(ctx, "virt-handler", node)
			access := rest.AnonymousClientConfig(r.access)
			access.BearerToken, access.UserAgent, access.QPS, access.Burst = token, "virt-handler", 200, 400
			return access, err
		}}
		wg.Go(func() { failed[1] = h.Run(ctx) })
	}
	return k, func() error {
		cancel()
		wg.Wait()
		return errors.Join(failed...)
	}, nil
}
