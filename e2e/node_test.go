package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// traces are what a VMI leaves on its node while it lives: processes, files
// and network devices of its pod.
type traces struct {
	t         *testing.T
	node, pod string
	// netns is where the pod's network namespace is mounted, which holds its taps.
	netns string
}

// traces looks for the VMI on its node.
func (s space) traces(v *vmi.VirtualMachineInstance) traces {
	s.t.Helper()
	return tracesOf(s.t, s.pod(v))
}

// tracesOf looks for a launcher pod on its node.
func tracesOf(t *testing.T, p corev1.Pod) traces {
	t.Helper()
	n := traces{t: t, node: p.Spec.NodeName, pod: string(p.UID)}
	pid, _, _ := strings.Cut(n.process("virt-launcher"), " ")
	// Its number is given to another one when it is gone, its name is not.
	n.netns = strings.TrimSpace(n.run(`for ns in /run/netns/*; do
		[ "$(stat -L -c %i "$ns" 2>/dev/null)" = "$(stat -L -c %i /proc/` + pid + `/ns/net)" ] && echo "$ns"
	done; true`))
	require.NotEmpty(t, n.netns, "pod %s has a network namespace", p.Name)
	return n
}

// run runs a script on the node and returns what it printed.
func (n traces) run(script string) string {
	n.t.Helper()
	var out, errs bytes.Buffer
	c := world.cluster.Node(n.node).Command(n.t.Context(), "sh", "-c", script)
	c.Stdout, c.Stderr = &out, &errs
	require.NoError(n.t, c.Run(), "%s: %s", script, errs.String())
	return out.String()
}

// processes are the command lines of the pod's processes, each after its
// process ID.
func (n traces) processes() []string {
	n.t.Helper()
	out := n.run(`for p in /proc/[0-9]*; do
		grep -qs ` + n.pod + ` $p/cgroup || continue
		echo "${p#/proc/} $(tr '\0' ' ' < $p/cmdline 2>/dev/null)"
	done`)
	var list []string
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); strings.Contains(line, " ") {
			list = append(list, line)
		}
	}
	return list
}

// process is the first process of the pod whose command line contains the
// text, after its process ID.
func (n traces) process(text string) string {
	n.t.Helper()
	all := n.processes()
	for _, p := range all {
		if strings.Contains(p, text) {
			return p
		}
	}
	n.t.Fatalf("pod %s has no process %q: %q", n.pod, text, all)
	return ""
}

// kill kills the pod's process whose command line contains the text.
func (n traces) kill(text string) {
	n.t.Helper()
	pid, _, _ := strings.Cut(n.process(text), " ")
	n.run("kill -9 " + pid)
}

// awaitNone waits until nothing of the VMI is left on the node: no process,
// no file and, with the network namespace, no tap. A sandbox whose end failed once is ended by
// the kubelet's garbage collection, which comes each minute.
func (n traces) awaitNone() {
	n.t.Helper()
	eventually(n.t, long, func() error {
		if p := n.processes(); len(p) != 0 {
			return fmt.Errorf("processes are left: %q", p)
		}
		if files := n.run("ls -d /var/lib/kubelet/pods/" + n.pod + " 2>/dev/null || true"); files != "" {
			return fmt.Errorf("files are left: %s", files)
		}
		if ns := n.run("ls -d " + n.netns + " 2>/dev/null || true"); ns != "" {
			return fmt.Errorf("the network namespace is left: %s", ns)
		}
		return nil
	})
}

func podIn(p corev1.Pod, want corev1.PodPhase) error {
	if p.Status.Phase != want {
		return fmt.Errorf("pod %s is %s and not %s", p.Name, p.Status.Phase, want)
	}
	return nil
}
