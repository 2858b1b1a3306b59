package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"

	"github.com/podvisor/podvisor/e2e/cluster/host"
	"github.com/podvisor/podvisor/e2e/cluster/plan"
)

// Problem is something in a cluster that does not work.
type Problem struct {
	// What does not work and why.
	What string
	// Log is the file to look in; empty means that there is none.
	Log string
}

// String says what does not work and where to look.
func (p Problem) String() string {
	if p.Log == "" {
		return p.What
	}
	return p.What + " (" + p.Log + ")"
}

// Problems returns what does not work; nothing means that the cluster is well.
func (c *Cluster) Problems(ctx context.Context) []Problem {
	pid, err := host.Holder(c.config.lockFile())
	if err != nil || pid == 0 {
		return []Problem{{What: "process 1 of the cluster is gone", Log: c.config.initLog()}}
	}
	problems := c.programProblems()
	if !c.runs(c.plan.ControlPlane.Name, "kube-apiserver") {
		if len(problems) == 0 { // it has just begun to run
			problems = append(problems, Problem{What: "kube-apiserver did not run"})
		}
		return problems
	}
	if err := c.apiProblem(ctx); err != nil {
		problems = append(problems, Problem{What: "the API server: " + err.Error(), Log: host.LogPath(c.dir("cp"), "kube-apiserver")})
		return problems
	}
	if c.plan.Extent != plan.Full {
		return problems
	}
	return append(problems, c.nodeProblems(ctx)...)
}

// hosts are the names of all hosts of the cluster.
func (c *Cluster) hosts() []string {
	return append([]string{c.plan.ControlPlane.Name}, c.NodeNames()...)
}

// dir is the folder of a host.
func (c *Cluster) dir(host string) string { return filepath.Join(c.config.state(), host) }

// works are the states in which a program does what it should.
var works = []host.State{host.Running, host.Done}

// programProblems are the programs that do not run.
func (c *Cluster) programProblems() []Problem {
	var problems []Problem
	for _, name := range c.hosts() {
		status, err := host.ReadStatus(c.dir(name))
		switch {
		case err != nil:
			problems = append(problems, Problem{What: fmt.Sprintf("status of %s: %v", name, err)})
		case len(status.Programs) == 0:
			problems = append(problems, Problem{What: name + " has not started", Log: c.logOf(name)})
		}
		for _, p := range status.Programs {
			if slices.Contains(works, p.State) {
				continue
			}
			what := fmt.Sprintf("%s on %s is %s", p.Name, name, p.State)
			if p.Reason != "" {
				what += ": " + p.Reason
			}
			if p.Restarts > 0 {
				what += fmt.Sprintf(" (ended %d times)", p.Restarts)
			}
			problem := Problem{What: what, Log: host.LogPath(c.dir(name), p.Name)}
			if p.State == host.Waiting {
				problem.Log = "" // what it waits for is the problem
			}
			problems = append(problems, problem)
		}
	}
	return problems
}

// runs says whether a program does what it should.
func (c *Cluster) runs(name, program string) bool {
	status, err := host.ReadStatus(c.dir(name))
	return err == nil && slices.ContainsFunc(status.Programs, func(p host.ProgramStatus) bool {
		return p.Name == program && slices.Contains(works, p.State)
	})
}

// logOf is where process 1 of a host writes.
func (c *Cluster) logOf(name string) string {
	if name == c.plan.ControlPlane.Name {
		return c.config.initLog()
	}
	return host.LogPath(c.dir(c.plan.ControlPlane.Name), name)
}

// working says which programs do what they should.
func (c *Cluster) working() []string {
	var done []string
	for _, m := range append([]plan.Host{c.plan.ControlPlane}, c.plan.Nodes...) {
		status, _ := host.ReadStatus(c.dir(m.Name))
		for _, p := range status.Programs {
			switch program := m.Program(p.Name); {
			case p.State == host.Done:
				done = append(done, fmt.Sprintf("%s: %s done", m.Name, p.Name))
			case p.State == host.Running && program.Name != "" && !program.Once:
				done = append(done, fmt.Sprintf("%s: %s runs", m.Name, p.Name))
			}
		}
	}
	return done
}

func (c *Cluster) apiProblem(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	_, err = client.get(ctx, "/readyz", nil)
	return err
}

// nodeProblems are the reasons why a pod could not start.
func (c *Cluster) nodeProblems(ctx context.Context) []Problem {
	client, err := c.client()
	if err != nil {
		return []Problem{{What: err.Error()}}
	}
	var problems []Problem
	for _, name := range c.NodeNames() {
		if why := nodeProblem(ctx, client, name); why != "" {
			problems = append(problems, Problem{What: "node " + name + ": " + why, Log: host.LogPath(c.dir(name), "kubelet")})
		}
	}
	status, err := client.get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", nil)
	if status == http.StatusNotFound {
		err = errors.New("it is not there yet")
	}
	if err != nil {
		log := host.LogPath(c.dir(c.plan.ControlPlane.Name), "kube-controller-manager")
		problems = append(problems, Problem{What: "the default service account: " + err.Error(), Log: log})
	}
	return problems
}

// nodeProblem says why the node takes no pods; empty means that it does.
func nodeProblem(ctx context.Context, client *client, name string) string {
	var node struct {
		Spec struct {
			Taints []struct{ Key, Effect string }
		}
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	status, err := client.get(ctx, "/api/v1/nodes/"+name, &node)
	if status == http.StatusNotFound {
		return "it has not registered"
	}
	if err != nil {
		return err.Error()
	}
	why := "it does not report its state"
	for _, condition := range node.Status.Conditions {
		if condition.Type == "Ready" {
			why = ""
			if condition.Status != "True" {
				return "not ready: " + condition.Message
			}
		}
	}
	for _, taint := range node.Spec.Taints {
		// Pods tolerate NoExecute for a while (DefaultTolerationSeconds), and the node
		// controller sets it late, from what it read before the node was ready.
		if taint.Effect == "NoSchedule" && (taint.Key == "node.kubernetes.io/not-ready" || taint.Key == "node.kubernetes.io/unreachable") {
			return "tainted " + taint.Key
		}
	}
	return why
}
