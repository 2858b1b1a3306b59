package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/podvisor/podvisor/e2e/cluster/host"
	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/e2e/debian"
	"github.com/podvisor/podvisor/e2e/toolchain"
)

const (
	// startTimeout limits how long a new cluster takes to be well.
	startTimeout = 10 * time.Minute
	// repairTimeout limits how long a running cluster takes to repair itself;
	// after that it is started anew.
	repairTimeout = 3 * time.Minute
)

// Up makes the cluster run and returns when it is well: its API serves, its
// nodes take pods, and names resolve. If it is well already that takes a moment.
// If a program of it was killed, Up waits until it has been started again; if
// the cluster cannot repair itself, or process 1 is gone, Up removes it and
// starts a new one under the same name, without the old one's objects.
//
// The cluster runs on when the caller ends or is killed; see [Cluster.Down].
func Up(ctx context.Context, c Config) (*Cluster, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("a local cluster needs root: it makes namespaces, mounts and control groups")
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s := newSteps(c.Out)
	if cluster, err := c.reuse(ctx, s); cluster != nil || err != nil {
		return cluster, err
	}
	if err := c.start(ctx, s); err != nil {
		return nil, fmt.Errorf("start cluster %s: %w", c.Name, err)
	}
	cluster, err := Open(c)
	if err != nil {
		return nil, err
	}
	if err := cluster.await(ctx, s, startTimeout); err != nil {
		return nil, fmt.Errorf("start cluster %s: %w", c.Name, err)
	}
	s.print("cluster %s is ready", c.Name)
	return cluster, nil
}

// Needs says what [Up] would have to make first: the parts that are not built yet, and the
// Debian packages that are not installed.
func Needs(ctx context.Context, c Config) (unbuilt, missing []string, err error) {
	c, err = c.complete()
	if err != nil {
		return nil, nil, err
	}
	unbuilt, more, err := toolchain.Unbuilt(toolchain.Config{Dir: filepath.Join(c.Dir, "toolchain")})
	if err != nil {
		return nil, nil, err
	}
	missing, err = debian.Missing(ctx, append(slices.Clone(packages), more...)...)
	return unbuilt, missing, err
}

// Build builds and installs what clusters run, and starts none: what [Up] does the first
// time that takes minutes.
func Build(ctx context.Context, c Config) error {
	c, err := c.complete()
	if err != nil {
		return err
	}
	_, err = c.build(ctx, newSteps(c.Out))
	return err
}

// build installs and builds what is missing.
func (c Config) build(ctx context.Context, s *steps) (toolchain.Tools, error) {
	if err := debian.Ensure(ctx, c.Out, packages...); err != nil {
		return toolchain.Tools{}, err
	}
	tools, err := toolchain.Build(ctx, toolchain.Config{Dir: filepath.Join(c.Dir, "toolchain"), Out: c.Out})
	if err == nil {
		s.print("programs: Kubernetes %s in %s", tools.Version, tools.Kubernetes)
	}
	return tools, err
}

// reuse returns the cluster that runs already, if it is well or becomes so.
func (c Config) reuse(ctx context.Context, s *steps) (*Cluster, error) {
	pid, err := host.Holder(c.lockFile())
	if err != nil {
		return nil, err
	}
	cluster, err := Open(c)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	switch {
	case pid == 0:
		s.print("cluster %s does not run any more: starting it anew", c.Name)
		return nil, nil
	case err != nil:
		s.print("plan of cluster %s cannot be read (%v): starting it anew", c.Name, err)
		return nil, nil
	case cluster.plan.Extent != c.Extent || c.Extent == plan.Full && len(cluster.plan.Nodes) != c.Nodes:
		s.print("cluster %s has another extent: starting it anew", c.Name)
		return nil, nil
	}
	problems := cluster.Problems(ctx)
	if len(problems) == 0 {
		s.print("cluster %s is running", c.Name)
		return cluster, nil
	}
	s.known(cluster.working())
	s.print("cluster %s is starting or repairing itself:\n%s", c.Name, indent(problems))
	err = cluster.await(ctx, s, repairTimeout)
	if err == nil {
		s.print("cluster %s is running again", c.Name)
		return cluster, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	s.print("cluster %s does not repair itself: starting it anew\n%v", c.Name, err)
	return nil, nil
}

// await waits until the cluster is well and prints what begins to work. Its
// error says what does not, with the ends of the logs.
func (c *Cluster) await(ctx context.Context, s *steps, timeout time.Duration) error {
	expired := time.NewTimer(timeout)
	defer expired.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		s.news(c.working())
		problems := c.Problems(ctx)
		if len(problems) == 0 {
			return nil
		}
		if pid, err := host.Holder(c.config.lockFile()); err == nil && pid == 0 {
			return failure(problems)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-expired.C:
			return failure(problems)
		case <-tick.C:
		}
	}
}

const (
	// tailLines and tails bound what an error shows of the logs.
	tailLines = 20
	tails     = 3
)

// failure is an error that says what to look at, with the ends of the logs.
func failure(problems []Problem) error {
	var b strings.Builder
	fmt.Fprintf(&b, "it is not well:\n%s", indent(problems))
	shown := map[string]bool{}
	for _, p := range problems {
		if p.Log == "" || shown[p.Log] || len(shown) == tails {
			continue
		}
		shown[p.Log] = true
		if end := tail(p.Log, tailLines); end != "" {
			fmt.Fprintf(&b, "\nthe end of %s:\n%s", p.Log, end)
		}
	}
	return errors.New(b.String())
}
