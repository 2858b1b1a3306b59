package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/e2e/fault"
	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/vmi"
)

// crashStoppedFor is how long a process is stopped.
const crashStoppedFor = 3 * time.Second

// on puts a VMI on the node of the scene.
func (s *scene) on(v *vmi.VirtualMachineInstance) *vmi.VirtualMachineInstance {
	onNode(s.node)(v)
	return v
}

// pids are the processes of a component: of the pods of the VMI, or of the node.
func (s *scene) pids(component string, l *life) (pids []int) {
	if slices.Contains(nodePrograms, component) {
		if pid := program(s.node, component); pid != 0 {
			pids = append(pids, pid)
		}
		return pids
	}
	if l.journey != nil {
		return l.journey.pids(component)
	}
	for _, p := range watched().pods() {
		if slices.Contains(l.pods, p.pod) && p.role() == component {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// components are those that run now.
func (s *scene) components(l *life) (all []string) {
	if s.Component != "" {
		return nil // it is asked without a fault only
	}
	if l.journey != nil {
		return l.journey.components()
	}
	for c := range crashKinds {
		if slices.Contains(nodePrograms, c) || len(s.pids(c, l)) > 0 {
			all = append(all, c)
		}
	}
	slices.Sort(all)
	return all
}

// inject injects the fault, and reports whether there was what it is for.
func (s *scene) inject(l *life) bool {
	if l.journey != nil {
		l.journey.at = time.Now()
	}
	if s.Kind == fault.Removed {
		return s.remove(l)
	}
	pids := s.pids(s.Component, l)
	if len(pids) == 0 {
		return false
	}
	switch s.Kind {
	case fault.Killed:
		signal(syscall.SIGKILL, pids...)
	case fault.Stopped:
		signal(syscall.SIGSTOP, pids...)
		s.faults.Go(func() {
			time.Sleep(crashStoppedFor)
			signal(syscall.SIGCONT, pids...)
		})
	case fault.OutOfMemory:
		s.faults.Go(func() { s.err = outOfMemory(pids[0]) })
	}
	return true
}

// awaitFault waits until the fault is over.
func (s *scene) awaitFault() {
	s.t.Helper()
	s.faults.Wait()
	require.NoError(s.t, s.err)
}

// outOfMemory takes all memory that the container of the process may have, until the kernel
// has killed the process. Memory in a file counts for no process, so that the kernel kills the
// others of the container.
func outOfMemory(pid int) error {
	began, _, _ := statOf(pid)
	group, err := memoryGroup(pid)
	if now, state, _ := statOf(pid); now == "" || state == "Z" {
		return nil // it has ended by itself
	}
	if err != nil {
		return err
	}
	// Another limit is not necessary, but there may be much below it.
	if usage, err := os.ReadFile(filepath.Join(group, "memory.usage_in_bytes")); err == nil {
		n, err := strconv.Atoi(strings.TrimSpace(string(usage)))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(group, "memory.limit_in_bytes"), []byte(strconv.Itoa(n+1<<20)), 0o644); err != nil && !errors.Is(err, syscall.EBUSY) {
			return err
		}
	}
	file, err := os.CreateTemp("/dev/shm", "crash-")
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(file.Close(), os.Remove(file.Name())) }()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	hog := exec.CommandContext(ctx, "sh", "-c", `echo $$ > "$1/cgroup.procs" && exec cat /dev/zero`, "sh", group)
	hog.Stdout = file
	if err := hog.Start(); err != nil {
		return err
	}
	defer func() { _ = hog.Wait() }()
	defer func() { _ = hog.Process.Kill() }()
	for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
		if now, state, _ := statOf(pid); now != began || state == "Z" {
			return nil
		}
	}
	return fmt.Errorf("the kernel did not kill process %d", pid)
}

// memoryGroup is the folder of the group by which the memory of the process is limited.
func memoryGroup(pid int) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		// One that ends is in the group of all of this host for a moment.
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 && f[1] == "memory" && strings.HasPrefix(f[2], "/"+plan.Cgroup(clusterName)+"/") {
			return "/sys/fs/cgroup/memory" + f[2], nil
		}
	}
	return "", fmt.Errorf("process %d is in no group of the cluster that limits memory", pid)
}

// endsGuest reports whether the guest of the life that the fault meets ends by it: its
// launcher ends, and takes it with it.
func (s *scene) endsGuest() bool {
	return s.Component == "virt-launcher" && s.Kind != fault.Stopped && !s.afterStop()
}

// afterStop reports whether the fault comes when the guest is to stop anyway.
func (s *scene) afterStop() bool {
	for _, state := range []string{"stop asked", "QEMU ended", "launcher ended", "end written", "pod ended", "pod gone", "gone"} {
		if strings.HasSuffix(s.Step.Name, " "+state) {
			return true
		}
	}
	return false
}

// switchedOff is the reason of a guest that does not power off, as one without a system.
const switchedOff = "GracePeriodExceeded"

// reasons are the causes of an end that a fault may have, see docs/lifecycle.md. The last one is
// in the status at last. The kernel kills QEMU first, and the kubelet says later why.
func (s *scene) reasons() []string {
	if s.Kind == fault.OutOfMemory {
		return []string{"Crashed", "OOMKilled"}
	}
	return []string{"PodFailed"}
}

// awaitEnd waits until the VMI has failed as a fault makes it fail.
func (s *scene) awaitEnd(name string) *vmi.VirtualMachineInstance {
	s.t.Helper()
	v := s.awaitFailed(name)
	want := s.reasons()
	eventually(s.t, soon, func() error {
		if v = s.get(name); v.Status.Reason != want[len(want)-1] {
			return fmt.Errorf("%s failed with %s: %+v", name, v.Status.Reason, v.Status.Conditions)
		}
		return nil
	})
	return v
}

// shot is what there is in the namespace, in words that do not differ from run to run.
type shot map[string]string

// rest waits until what there is, is what there is at this rest without a fault.
func (s *scene) rest(name string) {
	s.t.Helper()
	want := s.want[name]
	var last shot
	since := time.Now()
	eventually(s.t, 2*time.Minute, func() error {
		now, err := s.look()
		if err != nil {
			return err
		}
		s.shots[name] = now
		if want != nil {
			return errors.Join(difference(want, now), s.awaited(name))
		}
		if difference(last, now) != nil {
			last, since = now, time.Now()
		}
		if !settledAt(name, now) || time.Since(since) < 2*time.Second {
			return fmt.Errorf("not %s: %v", name, now)
		}
		return nil
	})
}

// awaited says that the guest that is to end by the fault before this rest has not ended: what
// there is before that, may be what there is when the next one runs.
func (s *scene) awaited(rest string) error {
	if !s.endsGuest() || s.Step.Number != map[string]int{"running": 1, "running again": 2}[rest] {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lives {
		if l.number == s.Step.Number && l.gone {
			return nil
		}
	}
	return errors.New("the guest of the fault has not ended")
}

// settledAt reports whether a shot can be that of the rest.
func settledAt(name string, s shot) bool {
	are := func(kind, state string) bool {
		for what, is := range s {
			if strings.HasPrefix(what, kind+" ") && (state == "" || !strings.Contains(is, state)) {
				return false
			}
		}
		return true
	}
	switch name {
	case "running", "running again":
		return len(s) > 1 && are("VMI", "Ready=True") && are("VM", "Ready=True")
	case "booted":
		return are("VMI", "AgentConnected=True")
	case "stopped":
		return are("VMI", "") && are("pod", "") && are("VM", "Stopped")
	}
	return are("VMI", "") && are("pod", "") && are("VM", "")
}

func difference(want, got shot) error {
	var errs []error
	for what, w := range want {
		if got[what] != w {
			errs = append(errs, fmt.Errorf("%s: want %q, got %q", what, w, got[what]))
		}
	}
	for what, g := range got {
		if _, ok := want[what]; !ok {
			errs = append(errs, fmt.Errorf("%s: there is %q", what, g))
		}
	}
	return errors.Join(errs...)
}

// look is what there is in the namespace.
func (s *scene) look() (shot, error) {
	ctx := s.t.Context()
	out := shot{}
	vmis, err := world.vmis.VirtualMachineInstances(s.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, v := range vmis.Items {
		var all []string
		for _, c := range v.Status.Conditions {
			all = append(all, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
		}
		slices.Sort(all)
		out["VMI "+v.Name] = fmt.Sprintf("%s %s %q deleted=%t on %s", v.Status.Phase, v.Status.Reason, all, v.DeletionTimestamp != nil, strings.ReplaceAll(v.Status.NodeName, s.node, "the node"))
	}
	vms, err := world.vmis.VirtualMachines(s.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, v := range vms.Items {
		var all []string
		for _, c := range v.Status.Conditions {
			all = append(all, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
		}
		slices.Sort(all)
		out["VM "+v.Name] = fmt.Sprintf("%s created=%t ready=%t %q requests=%d", v.Status.PrintableStatus, v.Status.Created, v.Status.Ready, all, len(v.Status.StateChangeRequests))
	}
	pods, err := world.kube.CoreV1().Pods(s.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, p := range pods.Items {
		name := "pod " + p.Annotations[vmi.DomainAnnotation]
		for out[name] != "" {
			name += "'"
		}
		out[name] = fmt.Sprintf("%s deleted=%t", p.Status.Phase, p.DeletionTimestamp != nil)
	}
	claims, err := world.kube.CoreV1().PersistentVolumeClaims(s.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, c := range claims.Items {
		out["claim "+c.Name] = string(c.Status.Phase)
	}
	return out, nil
}

// oracle says what of all that was seen is wrong.
func (s *scene) oracle(trace string) {
	s.t.Helper()
	s.leavesNothing()
	if trace == "move" {
		s.journeyOracle()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	lives, failed := map[string]int{"vmi": 1, "guest": 1, "vm": 2}[trace], 0
	if s.endsGuest() {
		failed = 1
		if trace == "vm" {
			lives++ // the VM starts it again
		}
	}
	var errs []error
	for _, l := range s.lives {
		what := fmt.Sprintf("VMI %s #%d with phases %q", l.name, l.number, l.phases)
		if err := fault.Phases(l.phases); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
		if !l.gone {
			errs = append(errs, fmt.Errorf("%s is not gone", what))
		}
		// A kubelet that starts refuses pods until virt-handler has offered its devices again.
		refuses := s.Component == "kubelet" && s.Kind == fault.Killed && len(l.netns) == 1
		if len(l.pods) != 1 && !refuses {
			errs = append(errs, fmt.Errorf("%s had %d pods", what, len(l.pods)))
		}
		met := l.number == s.Step.Number && s.Component == "virt-launcher" && s.Kind != fault.Stopped
		if n := len(l.qemus); n > s.starts(l) || n == 0 && !met {
			errs = append(errs, fmt.Errorf("%s had %d QEMUs", what, n))
		}
		if slices.Contains(l.phases, vmi.PhaseFailed) && (l.name == "guest" || l.reason != switchedOff) {
			failed--
			if !met || !slices.Contains(s.reasons(), l.reason) {
				errs = append(errs, fmt.Errorf("%s failed with %s", what, l.reason))
			}
		}
	}
	if len(s.lives) != lives {
		errs = append(errs, fmt.Errorf("%d VMIs were made, not %d", len(s.lives), lives))
	}
	if failed > 0 || failed < 0 && !s.afterStop() {
		errs = append(errs, fmt.Errorf("%d VMIs too many failed", -failed))
	}
	_, _, err := watched().said(s.name + "_")
	require.NoError(s.t, errors.Join(append(errs, err)...))
}

// starts is how many QEMUs there may be of the VMI, one after the other. A libvirt daemon that
// ends while it starts a QEMU leaves one that the next daemon ends and starts anew: its guest
// was not reported as running.
func (s *scene) starts(l *life) int {
	if s.Component != "libvirtd" || s.Kind != fault.Killed || s.Step.Number != l.number {
		return 1
	}
	switch strings.TrimPrefix(s.Step.Name, l.name+" ") {
	case "domain defined", "QEMU started":
		return 2
	}
	return 1
}

// leavesNothing waits until nothing of the scene is left on the nodes: no process, no folder of
// a pod, no mount, no network namespace, and no volume.
func (s *scene) leavesNothing() {
	s.t.Helper()
	s.mu.Lock()
	pods, spaces := map[string]bool{}, map[uint64]bool{}
	for _, l := range s.lives {
		for _, uid := range l.pods {
			pods[string(uid)] = true
		}
		for _, ns := range l.netns {
			spaces[ns] = true
		}
	}
	s.mu.Unlock()
	eventually(s.t, 2*time.Minute, func() error {
		for _, p := range watched().pods() {
			if pods[string(p.pod)] {
				return fmt.Errorf("a process is left: %q", p.args)
			}
		}
		for _, node := range nodes {
			mounts, err := os.ReadFile(filepath.Join(root(node), "proc/1/mountinfo"))
			if err != nil {
				return err
			}
			for uid := range pods {
				if _, err := os.Stat(filepath.Join(root(node), "var/lib/kubelet/pods", uid)); err == nil {
					return fmt.Errorf("the folder of pod %s is left", uid)
				}
				if strings.Contains(string(mounts), uid) {
					return fmt.Errorf("a mount of pod %s is left", uid)
				}
			}
			all, err := filepath.Glob(filepath.Join(root(node), "run/netns/*"))
			if err != nil {
				return err
			}
			for _, ns := range all {
				if spaces[inode(ns)] {
					return fmt.Errorf("network namespace %s is left", ns)
				}
			}
		}
		volumes, err := world.kube.CoreV1().PersistentVolumes().List(s.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, v := range volumes.Items {
			if v.Spec.ClaimRef != nil && v.Spec.ClaimRef.Namespace == s.name {
				return fmt.Errorf("volume %s of claim %s is left: %s", v.Name, v.Spec.ClaimRef.Name, v.Status.Phase)
			}
		}
		claims, err := world.kube.CoreV1().PersistentVolumeClaims(s.name).List(s.t.Context(), metav1.ListOptions{})
		if err == nil && len(claims.Items) > 0 {
			err = fmt.Errorf("claim %s is left", claims.Items[0].Name)
		}
		return err
	})
}

// awaitNode waits until the node is as before a fault: it is ready, and so is its handler,
// which has offered its devices.
func (s *scene) awaitNode() {
	s.t.Helper()
	ctx := context.Background()
	eventually(s.t, 2*time.Minute, func() error {
		for _, name := range nodePrograms {
			if program(s.node, name) == 0 {
				return fmt.Errorf("%s does not run", name)
			}
		}
		n, err := world.kube.CoreV1().Nodes().Get(ctx, s.node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				return fmt.Errorf("node %s is not ready: %s", s.node, c.Message)
			}
		}
		for name, much := range n.Status.Capacity {
			if strings.Contains(string(name), "kubevirt.io/") {
				if here := n.Status.Allocatable[name]; here.Cmp(much) != 0 || much.IsZero() {
					return fmt.Errorf("node %s has %s of %s %s", s.node, here.String(), much.String(), name)
				}
			}
		}
		l, err := world.kube.CoreV1().Pods(install.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "kubevirt.io=virt-handler", FieldSelector: "spec.nodeName=" + s.node})
		if err != nil {
			return err
		}
		for _, p := range l.Items {
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					return nil
				}
			}
		}
		return fmt.Errorf("no handler is ready on %s", s.node)
	})
}

// history is what was seen, for a failure.
func (s *scene) history() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out strings.Builder
	fmt.Fprintf(&out, "hit: %t; steps: %q\n", s.hit, s.steps)
	for _, l := range s.lives {
		fmt.Fprintf(&out, "VMI %s #%d: phases %q, reason %q, %d pods, %d QEMUs, gone: %t\n", l.name, l.number, l.phases, l.reason, len(l.pods), len(l.qemus), l.gone)
		if l.journey != nil {
			out.WriteString(l.journey.history())
		}
	}
	return out.String()
}
