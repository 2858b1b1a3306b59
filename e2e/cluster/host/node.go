package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/e2e/cluster/plan"
)

// RunNode runs a node of the cluster whose folder is dir until ctx ends. It must
// be process 1 in namespaces of its own.
func RunNode(ctx context.Context, dir, name string, log *slog.Logger) error {
	if os.Getpid() != 1 {
		return errors.New("not process 1 of a namespace")
	}
	p, err := readPlan(dir)
	if err != nil {
		return err
	}
	for _, n := range p.Nodes {
		if n.Name == name {
			return runNode(ctx, p, n, log)
		}
	}
	return fmt.Errorf("the plan of the cluster has no node %s", name)
}

func runNode(ctx context.Context, p plan.Plan, n plan.Host, log *slog.Logger) error {
	if err := unix.Sethostname([]byte(n.Name)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := mountNode(p, n); err != nil {
		return err
	}
	connecting, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := connect(connecting, n, p); err != nil {
		return err
	}
	s, err := newSupervisor(plan.NodeState, n.Name, n.Programs, newChildren(), log)
	if err != nil {
		return err
	}
	s.env = nodeEnv(os.Environ())
	s.run(ctx)
	return nil
}

// nodeEnv is the environment of a node's programs: the PATH has their tools.
func nodeEnv(env []string) []string {
	kept := []string{"PATH=" + NodePath}
	for _, e := range env {
		if name, _, _ := strings.Cut(e, "="); name == "LANG" || name == "HOME" {
			kept = append(kept, e)
		}
	}
	return kept
}

// NodePath is the PATH of a node.
const NodePath = plan.NodeRuntime + ":" + plan.NodeKubernetes + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// mountNode makes the file system of a node: the host's own, with everything
// that belongs to one node covered by the node's.
func mountNode(p plan.Plan, n plan.Host) error {
	if err := privateProc(); err != nil {
		return err
	}
	// The folders may lie below one that is about to be covered.
	folders := map[string]string{
		plan.NodeState:      filepath.Join(p.State, n.Name),
		plan.NodeKubernetes: p.Kubernetes,
		plan.NodeRuntime:    p.Runtime,
		plan.NodeCSI:        p.CSI,
		plan.NodePolicy:     p.Policy,
		plan.NodeVolumes:    filepath.Join(p.State, plan.VolumesDir),
	}
	held := map[string]int{}
	for target, source := range folders {
		fd, err := unix.Open(source, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", source, err)
		}
		defer unix.Close(fd)
		held[target] = fd
	}
	if err := mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return err
	}
	for target, fd := range held {
		if err := bind(fmt.Sprintf("/proc/self/fd/%d", fd), target); err != nil {
			return err
		}
	}
	for _, step := range []func() error{mountSys, mountFolders, coverSysctls} {
		if err := step(); err != nil {
			return err
		}
	}
	// Pods may mount for their node (Bidirectional), so nothing may be private.
	return mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
}

// privateProc cuts the mounts off from the host's and shows this namespace's
// processes in /proc.
func privateProc() error {
	if err := mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	return mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

// mountSys shows this network namespace in /sys and keeps the control groups.
func mountSys() error {
	const saved = "/run/podvisor/cgroup"
	if err := os.MkdirAll(saved, 0o755); err != nil {
		return err
	}
	if err := mount("/sys/fs/cgroup", saved, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	if err := mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	if err := mount(saved, "/sys/fs/cgroup", "", unix.MS_MOVE, ""); err != nil {
		return err
	}
	return os.Remove(saved)
}

// mountFolders gives the node its own /etc, /opt, /var/lib and /var/log.
func mountFolders() error {
	in := func(name string) string { return filepath.Join(plan.NodeState, name) }
	for _, dir := range []string{"lib/kubelet", "lib/containerd", "lib/cni", "var-log/pods", "var-log/containers",
		"opt/cni/bin", "cni-bin", "cni-work", "etc/cni/net.d", "etc-work"} {
		if err := os.MkdirAll(in(dir), 0o755); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/run/cdi", "/run/containerd", "/run/lock", "/run/netns"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for source, target := range map[string]string{"lib": "/var/lib", "var-log": "/var/log", "opt": "/opt"} {
		if err := mount(in(source), target, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	if err := overlay("/etc", in("etc"), in("etc-work"), "/etc"); err != nil {
		return err
	}
	// A pod may install CNI plugins; they must not end up in the shared cache.
	return overlay(filepath.Join(plan.NodeRuntime, "cni"), in("cni-bin"), in("cni-work"), "/opt/cni/bin")
}

// sysctls are what the kubelet sets although they belong to the whole host.
var sysctls = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// coverSysctls puts files over those sysctls, with the values that the kubelet
// wants to see. A covered /proc hinders user namespaces from mounting their own,
// unless an uncovered one is in sight: hence the second.
func coverSysctls() error {
	for name, value := range sysctls {
		file := filepath.Join("/run/podvisor/sysctl", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := mount(file, filepath.Join("/proc/sys", name), "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	if err := os.MkdirAll("/run/podvisor/proc", 0o555); err != nil {
		return err
	}
	return mount("proc", "/run/podvisor/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

func overlay(lower, upper, work, target string) error {
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", lower, upper, work)
	return mount("overlay", target, "overlay", 0, options)
}

// bind makes the folder target and shows source there.
func bind(source, target string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	return mount(source, target, "", unix.MS_BIND, "")
}

func mount(source, target, kind string, flags uintptr, options string) error {
	if err := unix.Mount(source, target, kind, flags, options); err != nil {
		return fmt.Errorf("mount %s %s on %s: %w", kind, source, target, err)
	}
	return nil
}
