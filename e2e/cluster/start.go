package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/podvisor/podvisor/e2e/cluster/host"
	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/e2e/toolchain"
)

// packages are what the nodes' programs call: kube-proxy and portmap nft, the
// kubelet mount, csi losetup, mkfs.ext4 and resize2fs, policy iptables and ipset, and
// this package nsenter.
var packages = []string{"e2fsprogs", "ipset", "iptables", "mount", "nftables", "util-linux"}

// start makes a new cluster and starts process 1. What is there of an old one
// is removed first. Killed at any point, it leaves what the next start removes.
func (c Config) start(ctx context.Context, s *steps) error {
	tools, err := c.build(ctx, s)
	if err != nil {
		return err
	}
	if err := bridgeFilter(ctx); err != nil {
		return err
	}
	executable, err := c.executable(ctx, s)
	if err != nil {
		return err
	}
	oldPort, _ := os.ReadFile(c.portFile())
	if err := c.remove(ctx); err != nil {
		return fmt.Errorf("remove what is left of the old one: %w", err)
	}
	if err := c.claim(); err != nil {
		return err
	}
	listener, err := listen(strings.TrimSpace(string(oldPort)))
	if err != nil {
		return err
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	p, err := c.lay(tools, port)
	if err != nil {
		return err
	}
	s.known(nil)
	s.print("certificates and configuration in %s", c.state())
	return c.spawn(executable, p, listener)
}

// bridgeFilter makes sure that packets between pods of one node pass the rules
// of kube-proxy; without, a Service does not answer if its pod is on the client's node.
func bridgeFilter(ctx context.Context) error {
	const sign = "/proc/sys/net/bridge"
	if _, err := os.Stat(sign); err == nil {
		return nil
	}
	out, err := exec.CommandContext(ctx, "modprobe", "br_netfilter").CombinedOutput()
	if err != nil {
		return fmt.Errorf("the kernel lacks bridge netfilter (%s): modprobe br_netfilter: %w: %s", sign, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// listen opens the port that clients on this host connect to: the one of the
// cluster that went before, so that a kubeconfig in use stays right, else a new one.
func listen(port string) (*net.TCPListener, error) {
	if port != "" {
		if l, err := net.Listen("tcp4", "127.0.0.1:"+port); err == nil {
			return l.(*net.TCPListener), nil
		}
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

// lay writes the cluster's folder; the plan comes last.
func (c Config) lay(tools toolchain.Tools, port int) (plan.Plan, error) {
	p := plan.New(plan.Config{
		Name: c.Name, Extent: c.Extent, Nodes: c.Nodes, ID: newID(), APIServer: c.APIServer,
		State: c.state(), Kubernetes: tools.Kubernetes, Runtime: tools.Runtime, CSI: tools.CSI, Policy: tools.Policy, PauseImage: toolchain.PauseImage,
	})
	files, err := keys(p, port)
	if err != nil {
		return p, err
	}
	for name, content := range p.Files {
		files[name] = []byte(content)
	}
	pause, err := os.ReadFile(tools.Pause)
	if err != nil {
		return p, err
	}
	for _, n := range p.Nodes {
		files[filepath.Join(n.Name, "pause.tar")] = pause
	}
	files["port"] = []byte(strconv.Itoa(port) + "\n")
	for name, content := range files {
		path := filepath.Join(c.state(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return p, err
		}
		if err := os.WriteFile(path, content, mode(name)); err != nil {
			return p, err
		}
	}
	if err := os.MkdirAll(filepath.Join(c.state(), plan.VolumesDir), 0o700); err != nil {
		return p, err
	}
	if err := os.Symlink(filepath.Join(tools.Kubernetes, "kubectl"), filepath.Join(c.state(), "kubectl")); err != nil {
		return p, err
	}
	return p, writeJSON(filepath.Join(c.state(), host.PlanFile), p)
}

// mode keeps secrets from other users of the host.
func mode(name string) os.FileMode {
	if strings.HasSuffix(name, ".key") || strings.HasSuffix(name, ".pem") || strings.HasSuffix(name, "kubeconfig") {
		return 0o600
	}
	return 0o644
}

func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// spawn starts process 1, which runs on when the caller ends.
func (c Config) spawn(executable string, p plan.Plan, listener *net.TCPListener) error {
	socket, err := listener.File()
	if err != nil {
		return err
	}
	defer socket.Close()
	log, err := os.OpenFile(c.initLog(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(executable, "init", c.state(), p.ID)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	if percent, ok := os.LookupEnv("GOGC"); ok { // of the control plane; a node has an environment of its own
		cmd.Env = append(cmd.Env, "GOGC="+percent)
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{socket}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: host.ClusterNamespaces, Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start process 1: %w", err)
	}
	ended := make(chan struct{})
	go func() { // it ends when the cluster is removed; leave no zombie
		_ = cmd.Wait()
		close(ended)
	}()
	return c.awaitLock(ended)
}

// awaitLock waits until process 1 has taken its lock.
func (c Config) awaitLock(ended <-chan struct{}) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if pid, err := host.Holder(c.lockFile()); err != nil || pid != 0 {
			return err
		}
		select {
		case <-ended:
			return fmt.Errorf("process 1 has ended; the end of %s:\n%s", c.initLog(), tail(c.initLog(), tailLines))
		case <-tick.C:
		}
	}
}

func readPlan(dir string) (plan.Plan, error) {
	var p plan.Plan
	data, err := os.ReadFile(filepath.Join(dir, host.PlanFile))
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(data, &p)
}

// The files in the cluster's folder that every part of this package knows.
func (c Config) lockFile() string { return filepath.Join(c.state(), host.LockFile) }
func (c Config) portFile() string { return filepath.Join(c.state(), "port") }
func (c Config) initLog() string  { return filepath.Join(c.state(), "init.log") }
