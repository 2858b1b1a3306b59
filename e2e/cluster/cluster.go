package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/podvisor/podvisor/e2e/cluster/plan"
)

// Config says which cluster is meant.
type Config struct {
	// Name identifies the cluster; empty means "dev".
	Name string
	// Extent is how much of a cluster there is; the zero value means all of it.
	Extent plan.Extent
	// Nodes is how many nodes a full cluster has; 0 means 2.
	Nodes int
	// APIServer is the program kube-apiserver; empty means that of the toolchain.
	APIServer string
	// Dir is where clusters and programs are kept; empty means the folder
	// podvisor in the user's cache folder.
	Dir string
	// Out gets a line for every step; nil means none.
	Out io.Writer

	sysctls string // in tests another folder than /proc/sys
}

// ErrNotFound is in the error when there is no cluster of the name.
var ErrNotFound = errors.New("there is no such cluster")

// validName bounds what goes into paths and control groups.
var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// complete fills in the defaults.
func (c Config) complete() (Config, error) {
	if c.Name == "" {
		c.Name = "dev"
	}
	if !validName.MatchString(c.Name) {
		return c, fmt.Errorf("invalid cluster name %q: it must be 1 to 32 lower case letters, digits and inner hyphens", c.Name)
	}
	if c.Nodes == 0 {
		c.Nodes = 2
	}
	if c.Nodes < 0 || c.Nodes > plan.MaxNodes {
		return c, fmt.Errorf("invalid number of nodes %d: it must be 1 to %d", c.Nodes, plan.MaxNodes)
	}
	if c.Extent != plan.Full && c.Extent != plan.APIServer {
		return c, fmt.Errorf("invalid extent %q: it must be %q or nothing", c.Extent, plan.APIServer)
	}
	if c.sysctls == "" {
		c.sysctls = "/proc/sys"
	}
	if c.Out == nil {
		c.Out = io.Discard
	}
	if c.Dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return c, fmt.Errorf("find a place for clusters: %w", err)
		}
		c.Dir = filepath.Join(cache, "podvisor")
	}
	return c, nil
}

// state is the cluster's folder.
func (c Config) state() string { return filepath.Join(c.Dir, "clusters", c.Name) }

// Cluster is a cluster that was started.
type Cluster struct {
	// Name of the cluster.
	Name string
	// Kubeconfig is the client configuration of an administrator. It works for
	// every program on this host and needs no other file.
	Kubeconfig string
	// Kubectl is a kubectl of the cluster's version.
	Kubectl string
	// AuditLog has a line of JSON for every request to the API server, written
	// before the answer is sent (audit.k8s.io/v1 Event at level Metadata).
	AuditLog string

	config Config
	plan   plan.Plan
}

// Open returns a cluster that was started before. It does not say whether the
// cluster is well, see [Cluster.Problems].
func Open(c Config) (*Cluster, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	p, err := readPlan(c.state())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cluster %s: %w", c.Name, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("open cluster %s: %w", c.Name, err)
	}
	return &Cluster{
		Name:       c.Name,
		Kubeconfig: filepath.Join(c.state(), "kubeconfig"),
		Kubectl:    filepath.Join(c.state(), "kubectl"),
		AuditLog:   filepath.Join(c.state(), "cp", "audit.log"),
		config:     c, plan: p,
	}, nil
}

// List returns the names of the clusters that were started and not removed.
func List(c Config) ([]string, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(c.Dir, "clusters"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && validName.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Down removes the cluster with all that it has on this host. It is no error
// if there is none.
func Down(ctx context.Context, c Config) error {
	c, err := c.complete()
	if err != nil {
		return err
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.remove(ctx); err != nil {
		return fmt.Errorf("remove cluster %s: %w", c.Name, err)
	}
	return c.release()
}

// Down removes the cluster, see [Down].
func (c *Cluster) Down(ctx context.Context) error { return Down(ctx, c.config) }

// NodeNames are the names of the nodes.
func (c *Cluster) NodeNames() []string {
	names := []string{}
	for _, n := range c.plan.Nodes {
		names = append(names, n.Name)
	}
	return names
}

// Usage is what a person needs to know to use the cluster.
func (c *Cluster) Usage() string {
	return strings.Join([]string{
		"export KUBECONFIG=" + c.Kubeconfig,
		"kubectl: " + c.Kubectl,
		"logs:    " + filepath.Join(c.config.state(), "*", "log", "*.log"),
		"audit:   " + c.AuditLog,
	}, "\n")
}
