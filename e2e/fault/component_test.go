package fault

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// component is one process behind a proxy, and what replaces it.
type component struct {
	name      string
	namespace string
	dir       string
	addr      string // of its endpoint
	token     *token
	proxy     *Proxy
	log       *os.File
	command   func(listen string) *exec.Cmd
	node      string   // of a virt-handler
	streams   string   // the address at which it serves them
	kubelet   *kubelet // of its launchers; nil: it has none

	mu     sync.Mutex
	first  *process
	second *process // what replaced it
}

// newController starts a virt-controller that sees the namespace only, and is installed in
// it. Its requests get the fault. The handlers of the nodes have these addresses.
func newController(ctx context.Context, namespace string, p Point, handlers map[string]string) (*component, error) {
	c := &component{name: "virt-controller", namespace: namespace, token: world.token}
	c.command = c.controllerCommand
	if err := install(ctx, namespace, handlers); err != nil {
		return nil, err
	}
	return c, c.start(p, namespace)
}

// start starts the process. Its questions about all namespaces are answered for one, if that is named.
func (c *component) start(p Point, confine string) (err error) {
	c.dir = folder(c.namespace, c.name)
	if err := os.Mkdir(c.dir, 0o711); err != nil {
		return err
	}
	if c.log, err = os.Create(filepath.Join(c.dir, "log")); err != nil {
		return err
	}
	c.addr = address()
	c.proxy, err = NewProxy(ProxyConfig{Server: world.server, Transport: world.toward, Addr: address(), Namespace: confine, Accounts: home, Apart: c.apart(),
		Certificate: world.shown, Overdue: world.overdue, Kind: p.Kind, Step: p.Step, Process: c})
	if err != nil {
		return err
	}
	err = errors.Join(os.WriteFile(filepath.Join(c.dir, "token"), []byte(c.token.last), 0o600),
		kubeconfig(filepath.Join(c.dir, "kubeconfig"), c.proxy.URL(), world.trusted, serverName, filepath.Join(c.dir, "token")))
	if err != nil {
		c.proxy.Close()
		return err
	}
	c.first = start(func() *exec.Cmd { return c.command(c.addr) })
	return nil
}

// folder is that of a component's files.
func folder(namespace, name string) string { return filepath.Join(world.dir, namespace+"-"+name) }

// apart is the object whose steps have names of their own: most of the requests of a handler are
// about others.
func (c *component) apart() string {
	if c.node == "" {
		return ""
	}
	return moverName
}

// address is an address of this host that nothing else has, nor will have: what connects to
// another one gets a port of 127.0.0.1.
func address() string {
	n := addresses.Add(1)
	return fmt.Sprintf("127.%d.%d.%d:8443", block, n>>8%256, n%256)
}

var (
	addresses atomic.Uint32
	block     = 1 + rand.IntN(254) // another one for each process
)

// install makes in a namespace what the manifests make in that of the installation.
func install(ctx context.Context, namespace string, handlers map[string]string) error {
	kube := world.kube
	if _, err := kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := kube.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "virt-controller"}, Rules: world.role.Rules}
	binding := &rbacv1.RoleBinding{ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "virt-controller", Namespace: home}}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: world.serving.Name}, Data: world.serving.Data, Type: world.serving.Type}
	_, errRole := kube.RbacV1().Roles(namespace).Create(ctx, role, metav1.CreateOptions{})
	_, errBinding := kube.RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{})
	_, errSecret := kube.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{})
	err = errors.Join(errRole, errBinding, errSecret)
	for node, host := range handlers {
		err = errors.Join(err, makeHandler(ctx, namespace, node, host))
	}
	return err
}

// makeHandler makes the pod of virt-handler on a node, with its address.
func makeHandler(ctx context.Context, namespace, node, host string) error {
	pods := world.kube.CoreV1().Pods(namespace)
	p, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "virt-handler-" + node, Labels: map[string]string{vmi.AppLabel: "virt-handler"}},
		Spec: corev1.PodSpec{NodeName: node, AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "virt-handler", Image: "example/virt-handler:v1"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	p.Status.Phase = corev1.PodRunning
	p.Status.PodIP, p.Status.PodIPs = host, []corev1.PodIP{{IP: host}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	_, err = pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
	return err
}

// controllerCommand is the program as in its container: the host name is the identity by which
// it leads, and is another for each pod.
func (c *component) controllerCommand(listen string) *exec.Cmd {
	pod := "virt-controller-" + strings.NewReplacer(".", "-", ":", "-").Replace(listen)
	cmd := exec.Command("sh", "-c", `hostname "$0" && exec "$@"`, pod, filepath.Join(world.dir, "virt-controller"),
		"-kubeconfig", filepath.Join(c.dir, "kubeconfig"), "-namespace", c.namespace, "-listen", listen,
		"-launcher-image", launcherImage, "-allow-emulation", "-container-disks", "auto")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GOMEMLIMIT=900MiB", "POD_NAMESPACE=" + c.namespace, "POD_NAME=" + c.token.bound.Name, "POD_UID=" + string(c.token.bound.UID)}
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", c.log, c.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUTS}
	return cmd
}

// awaitReady waits until the component says that it is ready.
func (c *component) awaitReady(ctx context.Context) error {
	own := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, Timeout: 5 * time.Second}
	for w := newWait(); ; {
		resp, err := own.Get("https://" + c.addr + "/readyz")
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			err = errors.New(resp.Status)
		}
		if w.over() {
			return fmt.Errorf("%s is not ready: %w", c.name, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(30 * time.Millisecond):
		}
	}
}

// end ends the component.
func (c *component) end() {
	c.mu.Lock()
	second := c.second
	c.mu.Unlock()
	c.first.end()
	if second != nil {
		second.end()
	}
	c.proxy.Close()
	_ = c.log.Close()
}

// unexpected is how often its processes have ended by themselves.
func (c *component) unexpected() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.first.unexpected()
	if c.second != nil {
		n += c.second.unexpected()
	}
	return n
}

// said is what it wrote to its log.
func (c *component) said() string {
	out, err := os.ReadFile(filepath.Join(c.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(out)
}

func (c *component) Kill()     { c.first.signal(syscall.SIGKILL) }
func (c *component) Stop()     { c.first.signal(syscall.SIGSTOP) }
func (c *component) Continue() { c.first.signal(syscall.SIGCONT) }

func (c *component) Freeze(d time.Duration) {
	if c.kubelet == nil {
		return
	}
	c.kubelet.signal(syscall.SIGSTOP)
	time.AfterFunc(d, func() { c.kubelet.signal(syscall.SIGCONT) })
}

func (c *component) Renew() {
	t, err := c.token.another(context.Background())
	if err == nil {
		err = os.WriteFile(filepath.Join(c.dir, "token"), []byte(t), 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "renew the token:", err)
	}
}

// Replace starts a second replica and waits until it leads, which is when the lease of the
// first is over.
func (c *component) Replace() {
	addr := address()
	c.mu.Lock()
	c.second = start(func() *exec.Cmd { return c.command(addr) })
	c.mu.Unlock()
	world.reviews.serve(c.namespace, addr, c.proxy)
	leases := world.kube.CoordinationV1().Leases(c.namespace)
	before := ""
	for end := time.Now().Add(limit / 2); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		l, err := leases.Get(context.Background(), "virt-controller", metav1.GetOptions{})
		if err != nil || l.Spec.HolderIdentity == nil {
			continue
		}
		if before == "" {
			before = *l.Spec.HolderIdentity
		}
		if *l.Spec.HolderIdentity != before {
			time.Sleep(time.Second) // it does what it finds to do
			return
		}
	}
	fmt.Fprintln(os.Stderr, "replace the leader: the lease has the same holder")
}
