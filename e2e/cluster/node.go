package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/podvisor/podvisor/e2e/cluster/host"
)

// Node is one of the cluster's hosts, as seen from outside of the pods.
type Node struct {
	// Name of the node; "cp" is the control plane.
	Name    string
	cluster *Cluster
}

// Node returns the node with the given name; "cp" is the control plane. Whether
// there is one shows when it is used.
func (c *Cluster) Node(name string) Node { return Node{Name: name, cluster: c} }

// Dir is the node's folder on this host: log/ has what its programs say,
// lib/kubelet is its /var/lib/kubelet.
func (n Node) Dir() string { return n.cluster.dir(n.Name) }

// Command returns a command that runs in all of the node's namespaces: it sees
// the node's processes, files and network. containerd's ctr, crictl-like tools
// of the host and the Kubernetes programs are in its PATH.
func (n Node) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	pid, err := n.PID()
	nsenter := []string{"--target", strconv.Itoa(pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--", name}
	cmd := exec.CommandContext(ctx, "nsenter", append(nsenter, args...)...)
	cmd.Env = []string{"PATH=" + n.path(), "HOME=/root", "LC_ALL=C.UTF-8"}
	if err != nil {
		cmd.Err = err
	}
	return cmd
}

func (n Node) path() string {
	if n.Name == n.cluster.plan.ControlPlane.Name {
		return n.cluster.plan.Kubernetes + ":" + os.Getenv("PATH")
	}
	return host.NodePath
}

// PID is the node's process 1, as the caller's process namespace names it.
func (n Node) PID() (int, error) {
	init, err := host.Holder(n.cluster.config.lockFile())
	if err != nil {
		return 0, err
	}
	if init == 0 {
		return 0, fmt.Errorf("cluster %s does not run", n.cluster.Name)
	}
	if n.Name == n.cluster.plan.ControlPlane.Name {
		return init, nil
	}
	status, err := host.ReadStatus(n.cluster.dir(n.cluster.plan.ControlPlane.Name))
	if err != nil {
		return 0, err
	}
	for _, p := range status.Programs {
		if p.Name == n.Name && p.PID != 0 {
			return child(init, p.PID)
		}
	}
	return 0, fmt.Errorf("node %s of cluster %s does not run", n.Name, n.cluster.Name)
}

// child finds the child of parent that is process 1 of a namespace and has the
// number inner in the namespace around that.
func child(parent, inner int) (int, error) {
	all, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		return 0, err
	}
	for _, file := range all {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		var ppid string
		var ids []string
		for line := range strings.Lines(string(data)) {
			switch fields := strings.Fields(line); fields[0] {
			case "PPid:":
				ppid = fields[1]
			case "NSpid:":
				ids = fields[1:]
			}
		}
		if ppid == strconv.Itoa(parent) && len(ids) >= 3 && ids[len(ids)-1] == "1" && ids[len(ids)-2] == strconv.Itoa(inner) {
			return strconv.Atoi(ids[0])
		}
	}
	return 0, fmt.Errorf("process %d of a cluster has ended", inner)
}
