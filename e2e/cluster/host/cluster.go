package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/e2e/cluster/plan"
)

// ClusterNamespaces are the namespaces that process 1 of a cluster is started in.
const ClusterNamespaces = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC

// nodeNamespaces are the namespaces that process 1 of a node is started in.
const nodeNamespaces = ClusterNamespaces

// LockFile is the file in the cluster's folder whose lock process 1 holds.
const LockFile = "init.lock"

// PlanFile is the file in the cluster's folder with the plan.
const PlanFile = "plan.json"

// RunCluster runs the cluster whose folder is dir until ctx ends. It must be
// process 1 in [ClusterNamespaces]. Connections to the listener are forwarded
// to the API server. It refuses to run if the plan in the folder has not the
// given id, because then the cluster has been started anew meanwhile.
func RunCluster(ctx context.Context, dir, id string, listener net.Listener, log *slog.Logger) error {
	if os.Getpid() != 1 {
		return errors.New("not process 1 of a namespace")
	}
	if err := Hold(filepath.Join(dir, LockFile)); err != nil {
		return err
	}
	p, err := readPlan(dir)
	if err != nil {
		return err
	}
	if p.ID != id {
		return fmt.Errorf("the cluster in %s was started anew", dir)
	}
	if err := privateProc(); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(p.ControlPlane.Name)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := makeSwitch(p.ControlPlane.Address, p.ControlPlane.Address6); err != nil {
		return err
	}
	programs := p.ControlPlane.Programs
	for _, n := range p.Nodes {
		programs = append(programs, plan.Program{Name: n.Name, Args: []string{"/proc/self/exe", "node", dir, n.Name}})
	}
	s, err := newSupervisor(filepath.Join(dir, p.ControlPlane.Name), p.ControlPlane.Name, programs, newChildren(), log)
	if err != nil {
		return err
	}
	s.prepare = func(program plan.Program) (*syscall.SysProcAttr, func(int) error, error) {
		for _, n := range p.Nodes {
			if n.Name == program.Name {
				return prepareNode(filepath.Join(dir, n.Name), n)
			}
		}
		return &syscall.SysProcAttr{}, func(int) error { return nil }, nil
	}
	go forward(listener, netAddress(p.ControlPlane), log)
	s.run(ctx)
	return nil
}

// netAddress is where the API server listens.
func netAddress(m plan.Host) string { return net.JoinHostPort(m.Address.Addr().String(), "6443") }

// prepareNode removes what an earlier run of the node has left.
func prepareNode(dir string, n plan.Host) (*syscall.SysProcAttr, func(pid int) error, error) {
	if err := os.Remove(filepath.Join(dir, statusFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	if err := RemoveCgroups(n.Cgroup); err != nil {
		return nil, nil, err
	}
	if err := makeCgroups(n.Cgroup); err != nil {
		return nil, nil, err
	}
	if err := unplug(n); err != nil {
		return nil, nil, err
	}
	return &syscall.SysProcAttr{Cloneflags: nodeNamespaces}, func(pid int) error { return plug(n, pid) }, nil
}

func readPlan(dir string) (plan.Plan, error) {
	data, err := os.ReadFile(filepath.Join(dir, PlanFile))
	if err != nil {
		return plan.Plan{}, err
	}
	var p plan.Plan
	if err := json.Unmarshal(data, &p); err != nil {
		return plan.Plan{}, fmt.Errorf("read %s: %w", PlanFile, err)
	}
	return p, nil
}
