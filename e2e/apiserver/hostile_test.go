package apiserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// launcherUser is the user of launchers.
const launcherUser = 107

// launcher is one that a process of launchers shall be.
type launcher struct {
	// Kind is one of hostileKinds, or empty for one that does what it is asked.
	Kind string
	// Dir is the folder of its socket.
	Dir             string
	Namespace, Name string
	UID             types.UID
	// Network is the descriptor of the pod's network namespace. 0: that of the
	// process.
	Network int
}

// launchers is a process of the launchers' user that is many launchers.
type launchers struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
	// networks are those of pods that no launcher has yet, as descriptors of the
	// process.
	networks []int
}

// startLaunchers starts a process with these network namespaces.
func startLaunchers(t *testing.T, networks ...*os.File) *launchers {
	t.Helper()
	self, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer self.Close()
	// By a descriptor: the folder that the program is in is root's.
	c := exec.Command("/proc/self/fd/3", "-test.run=^TestLaunchersProcess$", "-test.v=false")
	c.ExtraFiles = append([]*os.File{self}, networks...)
	c.Env = append(os.Environ(), "PODVISOR_LAUNCHERS=yes", "GOMAXPROCS=1")
	c.Stderr = os.Stderr
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: launcherUser, Gid: launcherUser}}
	l := &launchers{t: t}
	l.in, err = c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	l.out = bufio.NewReader(out)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	for i := range networks {
		l.networks = append(l.networks, 4+i)
	}
	return l
}

// add adds a launcher, which listens when add returns.
func (l *launchers) add(n launcher) {
	l.t.Helper()
	if len(l.networks) > 0 {
		n.Network, l.networks = l.networks[0], l.networks[1:]
	}
	require.NoError(l.t, json.NewEncoder(l.in).Encode(n))
	said, err := l.out.ReadString('\n')
	require.NoError(l.t, err)
	require.Equal(l.t, "ok\n", said)
}

// TestLaunchersProcess is the process of launchers, not a test.
func TestLaunchersProcess(t *testing.T) {
	if os.Getenv("PODVISOR_LAUNCHERS") == "" {
		t.Skip("is a process of launchers, which a test starts")
	}
	for in := json.NewDecoder(os.Stdin); ; {
		var n launcher
		if in.Decode(&n) != nil {
			return
		}
		require.NoError(t, os.Chdir(n.Dir))
		l, err := net.Listen("unix", vmi.LauncherSocket) // the path from the root is too long
		require.NoError(t, err)
		go n.run(l)
		fmt.Println("ok")
	}
}

func (n launcher) network() string {
	if n.Network == 0 {
		return "/proc/self/ns/net"
	}
	return fmt.Sprintf("/proc/self/fd/%d", n.Network)
}

func (n launcher) run(l net.Listener) {
	kind := hostileKinds[n.Kind]
	if kind == nil {
		n.obey(l)
		return
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			r, err := http.ReadRequest(bufio.NewReader(c))
			if err == nil {
				kind(n, c.(*net.UnixConn), r)
			}
		}()
	}
}

// obey starts the guest as it is asked to.
func (n launcher) obey(l net.Listener) {
	var s *control.Server
	s = control.NewServer(control.ServerConfig{Namespace: n.Namespace, Name: n.Name, UID: n.UID, NetworkNamespace: n.network(),
		Put: func(d protocol.Desired) error {
			s.Publish(protocol.State{Generation: d.Generation, Phase: protocol.Running, Machine: "pc-q35-9.2", Disks: []protocol.Disk{{Name: "root", Target: "vda", SizeBytes: 1 << 30}}})
			return nil
		}})
	_ = s.Serve(context.Background(), l)
}

// hostileKinds are launchers that do not do what they are asked. Each answers one request.
var hostileKinds = map[string]func(launcher, *net.UnixConn, *http.Request){
	"hangs on every call":        func(_ launcher, c *net.UnixConn, _ *http.Request) { hang(c) },
	"hangs on every put":         hangPut,
	"answers late":               late,
	"flaps":                      flap,
	"sends bytes without end":    endless,
	"sends long strings":         longStrings,
	"sends many values":          many,
	"connects and drops":         dropAll,
	"sends other descriptors":    descriptors,
	"refuses with long messages": refuse,
	"switches protocols":         switchProtocols,
}

func switchProtocols(_ launcher, c *net.UnixConn, _ *http.Request) {
	_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	hang(c)
}

func hang(c *net.UnixConn) { _, _ = io.Copy(io.Discard, c) }

func head(c *net.UnixConn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n") }

// isPut reads a Put whole and answers it.
func isPut(c *net.UnixConn, r *http.Request) bool {
	if r.Method != http.MethodPut {
		return false
	}
	_, _ = io.Copy(io.Discard, r.Body)
	_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
	return true
}

// isNetwork sends the pod's network namespace if that is asked for.
func (n launcher) isNetwork(c *net.UnixConn, r *http.Request) bool {
	if r.Header.Get("Upgrade") == "" {
		return false
	}
	f, err := os.Open(n.network())
	if err != nil {
		return true
	}
	defer f.Close()
	upgrade(c, int(f.Fd()))
	return true
}

func upgrade(c *net.UnixConn, fds ...int) {
	_, _, _ = c.WriteMsgUnix([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: podvisor-stream\r\n\r\n"), unix.UnixRights(fds...), nil)
}

func send(c *net.UnixConn, s protocol.State) error { return json.NewEncoder(c).Encode(s) }

func hangPut(n launcher, c *net.UnixConn, r *http.Request) {
	if n.isNetwork(c, r) {
		return
	}
	if r.Method != http.MethodPut {
		head(c)
		_ = send(c, protocol.State{Phase: protocol.Waiting})
	}
	if strings.HasSuffix(r.URL.Path, "/state") {
		return
	}
	hang(c)
}

func late(n launcher, c *net.UnixConn, r *http.Request) {
	time.Sleep(4800 * time.Millisecond)
	if n.isNetwork(c, r) || isPut(c, r) {
		return
	}
	head(c)
	for _, p := range []protocol.Phase{protocol.Waiting, protocol.Running} {
		_ = send(c, protocol.State{Phase: p})
		time.Sleep(4800 * time.Millisecond)
	}
}

// invented is a state of a guest that runs, which is never the same.
func invented() protocol.State {
	s := protocol.State{Phase: protocol.Running, Machine: fmt.Sprintf("q35-%d", rand.Int()), Emulated: rand.IntN(2) == 0,
		Reboots: rand.Int64(), Panics: rand.Int64(), Agent: &protocol.Agent{Version: fmt.Sprint(rand.Int())},
		Finding:   &vmi.Finding{Reason: fmt.Sprintf("R%d", rand.Int()), Message: strings.Repeat(fmt.Sprint(rand.Int()), 50)},
		NotBooted: &vmi.Finding{Reason: fmt.Sprintf("R%d", rand.Int()), Message: strings.Repeat(fmt.Sprint(rand.Int()), 50)},
	}
	if rand.IntN(2) == 0 {
		s.Phase, s.Pause = protocol.Paused, &protocol.Pause{Cause: protocol.PausedByIOError, Volume: "root", Message: fmt.Sprint(rand.Int())}
	}
	s.Disks = append(s.Disks, protocol.Disk{Name: "root", Target: "vda", SizeBytes: rand.Int64()})
	for i := range 511 {
		s.Disks = append(s.Disks, protocol.Disk{Name: fmt.Sprintf("invented-%d", i), Target: fmt.Sprintf("vd%d", i), SizeBytes: rand.Int64()})
	}
	return s
}

func flap(n launcher, c *net.UnixConn, r *http.Request) {
	if n.isNetwork(c, r) || isPut(c, r) {
		return
	}
	head(c)
	for send(c, invented()) == nil {
		if strings.HasSuffix(r.URL.Path, "/state") {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func endless(n launcher, c *net.UnixConn, r *http.Request) {
	if r.Header.Get("Upgrade") == "" {
		head(c)
	}
	for b := []byte(strings.Repeat(`{"disks":[`, 6000)); ; {
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

func longStrings(n launcher, c *net.UnixConn, r *http.Request) {
	if n.isNetwork(c, r) || isPut(c, r) {
		return
	}
	head(c)
	s := invented()
	s.Disks = nil
	s.Finding.Message = strings.Repeat("\x1b[31m\u202eA", 10_000)
	for send(c, s) == nil {
		_, _ = io.WriteString(c, `{"phase":"Running","generation":1e18,"reboots":9223372036854775807,"panics":-9223372036854775808}`+"\n")
		_, _ = io.WriteString(c, `{"phase":"Running","generation":1e999999999}`+"\n")
	}
}

func many(_ launcher, c *net.UnixConn, _ *http.Request) {
	head(c)
	for {
		if _, err := io.WriteString(c, `{"disks":[{}`+strings.Repeat(",{}", 40_000)+"]}\n"); err != nil {
			return
		}
	}
}

func dropAll(n launcher, c *net.UnixConn, r *http.Request) {
	if n.isNetwork(c, r) || isPut(c, r) {
		return
	}
	head(c)
	_ = send(c, invented())
}

func descriptors(n launcher, c *net.UnixConn, r *http.Request) {
	if isPut(c, r) {
		return
	}
	var fds []int
	for _, path := range []string{"/proc/self/ns/mnt", "/proc/self/ns/user", "/proc/self/ns/net", "/dev/null", "/proc/self/mem"} {
		if f, err := os.Open(path); err == nil {
			defer f.Close()
			fds = append(fds, int(f.Fd()))
		}
	}
	if r.Header.Get("Upgrade") != "" {
		switch i := rand.IntN(len(fds) + 1); i {
		case len(fds):
			for range 50 {
				upgrade(c, append(fds, fds...)...)
			}
		default:
			upgrade(c, fds[i])
		}
		return
	}
	_, _, _ = c.WriteMsgUnix([]byte("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"), unix.UnixRights(fds...), nil)
	_ = send(c, protocol.State{Phase: protocol.Running})
	hang(c)
}

func refuse(n launcher, c *net.UnixConn, r *http.Request) {
	if n.isNetwork(c, r) {
		return
	}
	if r.Method == http.MethodPut {
		_, _ = io.WriteString(c, "HTTP/1.1 409 Conflict\r\nConnection: close\r\n\r\n")
		_ = json.NewEncoder(c).Encode(vmi.Finding{Reason: "Stale", Message: strings.Repeat(fmt.Sprint(rand.Int(), "\n"), 3000)})
		return
	}
	head(c)
	_ = send(c, protocol.State{Phase: protocol.Waiting, Generation: rand.Int64()})
	if strings.HasSuffix(r.URL.Path, "/watch") {
		hang(c)
	}
}

// sockets makes the folder of a pod's sockets, as the kubelet does.
func sockets(t *testing.T, pods string, uid types.UID) string {
	t.Helper()
	dir := filepath.Join(pods, string(uid), "volumes/kubernetes.io~empty-dir", vmi.SocketsVolume)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.Chmod(dir, 0o777))
	return dir
}
