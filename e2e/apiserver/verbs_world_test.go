package apiserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/podvisor/podvisor/e2e/cluster"
	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/handler/stream"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// verbs is an API server with Podvisor installed. virt-controller and virt-certificates are
// processes of the real program beside it, with the rights of their accounts. The test is
// the leader of virt-controller, whose loops would act on its objects, and the handler of a
// node, with guests of its own.
type verbs struct {
	cluster *cluster.Cluster
	config  *rest.Config
	kube    kubernetes.Interface
	vmis    *client.Client
	guests  *played
	// program is the file of virt-controller, and folder is where it and what it reads is.
	program, folder string
	// environment is that of virt-controller.
	environment []string

	mu       sync.Mutex
	replicas map[int]*exec.Cmd // by their ports
	end      []func()
}

// verbNode is the node of the guests.
const verbNode = "n1"

var theVerbs struct {
	turn sync.Mutex
	once sync.Once
	v    verbs
	err  error
}

// newVerbs is the API server that all tests of the verbs share, with one replica of
// virt-controller. The test has it for itself until it ends.
func newVerbs(t *testing.T) *verbs {
	t.Helper()
	testenv.Root(t)
	theVerbs.turn.Lock()
	t.Cleanup(theVerbs.turn.Unlock)
	theVerbs.once.Do(func() { theVerbs.err = theVerbs.v.up(context.Background()) })
	require.NoError(t, theVerbs.err)
	return &theVerbs.v
}

// down removes what [newVerbs] made.
func (v *verbs) down(ctx context.Context) error {
	for _, p := range v.ports() {
		v.kill(p)
	}
	for _, f := range v.end {
		f()
	}
	err := os.RemoveAll(v.folder)
	if v.cluster != nil {
		err = errors.Join(err, v.cluster.Down(ctx))
	}
	return err
}

func (v *verbs) up(ctx context.Context) error {
	v.guests = &played{open: map[net.Conn]string{}}
	if err := v.install(ctx, clusterName+"-verbs"); err != nil {
		return err
	}
	for _, f := range []func(context.Context) error{v.lead, v.aggregate, v.handle, v.certify, func(ctx context.Context) error { return v.start(ctx, 8443) }, v.available} {
		if err := f(ctx); err != nil {
			return err
		}
	}
	return nil
}

// install starts an API server of this name and applies the manifests. No process of Podvisor
// runs then.
func (v *verbs) install(ctx context.Context, name string) error {
	v.replicas = map[int]*exec.Cmd{}
	var err error
	if v.folder, err = os.MkdirTemp("", "verbs"); err != nil {
		return err
	}
	v.program = filepath.Join(v.folder, "virt-controller")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w "+linked.Flags(), "-o", v.program, "./cmd/virt-controller")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build virt-controller: %w: %s", err, out)
	}
	if v.cluster, err = cluster.Up(ctx, cluster.Config{Name: name, Extent: plan.APIServer, Out: os.Stdout}); err != nil {
		return err
	}
	if v.config, err = clientcmd.BuildConfigFromFlags("", v.cluster.Kubeconfig); err != nil {
		return err
	}
	v.config.QPS, v.config.Burst = 500, 1000
	if v.kube, err = kubernetes.NewForConfig(v.config); err != nil {
		return err
	}
	if v.vmis, err = client.New(v.config); err != nil {
		return err
	}
	apply := exec.CommandContext(ctx, v.cluster.Kubectl, "--kubeconfig", v.cluster.Kubeconfig, "apply", "--server-side", "-k", "../../manifests")
	if out, err := apply.CombinedOutput(); err != nil {
		return fmt.Errorf("apply the manifests: %w: %s", err, out)
	}
	return install.Slow(ctx, v.kube, func(string) bool { return true })
}

// lead takes the lease of virt-controller for the time of the tests.
func (v *verbs) lead(ctx context.Context) error {
	now := metav1.NowMicro()
	_, err := v.kube.CoordinationV1().Leases(home).Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "virt-controller"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("test"), LeaseDurationSeconds: new(int32(86400)), AcquireTime: &now, RenewTime: &now,
	}}, metav1.CreateOptions{})
	return err
}

// aggregate fills Kubernetes' own roles for users, as its controller manager does.
func (v *verbs) aggregate(ctx context.Context) error {
	roles := v.kube.RbacV1().ClusterRoles()
	all, err := roles.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	filled := map[string]*rbacv1.ClusterRole{}
	for _, name := range []string{"view", "edit", "admin"} { // each has what the one before has
		into, err := roles.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		into.Rules = nil
		for _, which := range into.AggregationRule.ClusterRoleSelectors {
			selector, err := metav1.LabelSelectorAsSelector(&which)
			if err != nil {
				return err
			}
			for _, r := range all.Items {
				if !selector.Matches(labels.Set(r.Labels)) {
					continue
				}
				if f := filled[r.Name]; f != nil {
					r = *f
				}
				into.Rules = append(into.Rules, r.Rules...)
			}
		}
		if filled[name], err = roles.Update(ctx, into, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// handle makes the node, and answers as its handler. Its guests are v.guests.
func (v *verbs) handle(ctx context.Context) error {
	if _, err := v.kube.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: verbNode}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, cfg, err := v.component(ctx, "virt-handler")
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	cert, err := stream.NewCertificate(time.Now())
	if err != nil {
		return err
	}
	if _, err = kube.CoreV1().Nodes().Patch(ctx, verbNode, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+stream.CertificateAnnotation+`":"`+cert.Hash+`"}}}`), metav1.PatchOptions{}); err != nil {
		return err
	}
	var l net.Listener
	if err := v.beside(func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(plan.ControlPlane.Addr().String(), "8186"))
		return err
	}); err != nil {
		return err
	}
	reviews := stream.NewReviews(stream.ReviewsConfig{Client: kube.AuthenticationV1().TokenReviews(), Node: verbNode, User: "system:serviceaccount:" + home + ":virt-controller"})
	s := stream.NewServer(stream.ServerConfig{Guests: v.guests, Admit: reviews.Admit, Certificate: cert})
	serving, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(serving, l) }()
	v.end = append(v.end, func() { cancel(); <-done })
	return nil
}

// component makes a pod of a component on the node, whose address is that of the API
// server, and returns it with a configuration that has its token.
func (v *verbs) component(ctx context.Context, account string) (*corev1.Pod, *rest.Config, error) {
	pods, address := v.kube.CoreV1().Pods(home), plan.ControlPlane.Addr().String()
	p, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: account + "-", Labels: map[string]string{vmi.AppLabel: account}},
		Spec:       corev1.PodSpec{NodeName: verbNode, ServiceAccountName: account, Containers: []corev1.Container{{Name: "c", Image: "example/c"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, nil, err
	}
	p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, address, []corev1.PodIP{{IP: address}}
	if _, err := pods.UpdateStatus(ctx, p, metav1.UpdateOptions{}); err != nil {
		return nil, nil, err
	}
	cfg, err := v.withToken(ctx, home, account, &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.Name, UID: p.UID})
	return p, cfg, err
}

// withToken is a configuration with a token of the account.
func (v *verbs) withToken(ctx context.Context, namespace, account string, of *authenticationv1.BoundObjectReference) (*rest.Config, error) {
	r, err := v.kube.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: of}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	cfg := rest.AnonymousClientConfig(v.config)
	cfg.BearerToken, cfg.QPS, cfg.Burst = r.Status.Token, 500, 1000
	return cfg, nil
}

// kubeconfig writes the configuration of a component, for where the API server is.
func (v *verbs) kubeconfig(name string, cfg *rest.Config) (string, error) {
	file := filepath.Join(v.folder, name+".kubeconfig")
	return file, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: plan.Server, CertificateAuthorityData: v.config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"c": {Token: cfg.BearerToken}},
		Contexts:  map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}}, CurrentContext: "c",
	}, file)
}

// certify runs virt-certificates.
func (v *verbs) certify(ctx context.Context) error {
	_, cfg, err := v.component(ctx, "virt-certificates")
	if err != nil {
		return err
	}
	file, err := v.kubeconfig("virt-certificates", cfg)
	if err != nil {
		return err
	}
	p, err := v.run("virt-certificates", nil, "certificates", "--kubeconfig="+file, "--namespace="+home)
	if err != nil {
		return err
	}
	v.end = append(v.end, func() { _ = p.Process.Kill(); _ = p.Wait() })
	own, cfg, err := v.component(ctx, "virt-controller")
	if err != nil {
		return err
	}
	if _, err = v.kubeconfig("virt-controller", cfg); err != nil {
		return err
	}
	v.environment = []string{"POD_NAME=" + own.Name, "POD_UID=" + string(own.UID), "POD_NAMESPACE=" + home, "LAUNCHER_IMAGE=podvisor/virt-launcher:v1", "GOMEMLIMIT=900MiB"}
	return nil
}

// run runs the program beside the API server.
func (v *verbs) run(name string, environment []string, args ...string) (*exec.Cmd, error) {
	log, err := os.OpenFile(filepath.Join(v.folder, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	c := exec.Command(v.program, args...)
	c.Env, c.Stdout, c.Stderr = append(os.Environ(), environment...), log, log
	return c, v.beside(c.Start)
}

// start runs a replica of virt-controller at the port, and has the API server use it when it is
// ready.
func (v *verbs) start(ctx context.Context, port int) error {
	name := fmt.Sprintf("virt-controller-%d", port)
	address := plan.ControlPlane.Addr().String()
	c, err := v.run(name, v.environment, "--kubeconfig="+filepath.Join(v.folder, "virt-controller.kubeconfig"), fmt.Sprintf("--listen=%s:%d", address, port))
	if err != nil {
		return err
	}
	v.mu.Lock()
	v.replicas[port] = c
	v.mu.Unlock()
	end := time.Now().Add(timeout)
	for {
		answer, err := v.at(port, nil).Get(fmt.Sprintf("https://%s:%d/readyz", address, port))
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				break
			}
			err = errors.New(answer.Status)
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(filepath.Join(v.folder, name+".log"))
			return fmt.Errorf("wait for virt-controller: %w: %s", err, log)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return v.endpoint(ctx, port)
}

// endpoint has the API server send reviews to the port, as Kubernetes does with a pod that is
// ready.
func (v *verbs) endpoint(ctx context.Context, port int) error {
	_, err := v.kube.DiscoveryV1().EndpointSlices(home).Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: fmt.Sprintf("virt-controller-%d", port), Labels: map[string]string{discoveryv1.LabelServiceName: "virt-controller"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{plan.ControlPlane.Addr().String()}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("webhooks"), Port: new(int32(port))}},
	}, metav1.CreateOptions{})
	return err
}

// ports are those of the replicas.
func (v *verbs) ports() (out []int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for p := range v.replicas {
		out = append(out, p)
	}
	return out
}

// kill kills the replica at the port, and takes its address out of the Service as
// Kubernetes does.
func (v *verbs) kill(port int) {
	v.mu.Lock()
	c := v.replicas[port]
	delete(v.replicas, port)
	v.mu.Unlock()
	if c == nil {
		return
	}
	_ = c.Process.Kill()
	_ = c.Wait()
	_ = v.kube.DiscoveryV1().EndpointSlices(home).Delete(context.Background(), fmt.Sprintf("virt-controller-%d", port), metav1.DeleteOptions{})
}

// memory is the most memory that the replica has had, in MiB.
func (v *verbs) memory(t *testing.T, port int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.replicas[port].Process.Pid))
	require.NoError(t, err)
	_, after, found := strings.Cut(string(status), "VmHWM:")
	require.True(t, found)
	var kib int
	_, err = fmt.Sscan(after, &kib)
	require.NoError(t, err)
	return kib >> 10
}

// seats is how much of the API server's priority levels the requests that it works on take.
func (v *verbs) seats(t *testing.T) int {
	t.Helper()
	text, err := v.kube.Discovery().RESTClient().Get().AbsPath("/metrics").Do(t.Context()).Raw()
	require.NoError(t, err)
	all, series := 0, 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "apiserver_flowcontrol_current_executing_seats{") && !strings.Contains(line, `priority_level="exempt"`) {
			n, err := strconv.Atoi(line[strings.LastIndex(line, " ")+1 : len(line)-1])
			require.NoError(t, err)
			all, series = all+n, series+1
		}
	}
	require.Positive(t, series)
	return all
}

// apiServices says whether the API server has both versions available.
func (v *verbs) apiServices(ctx context.Context) error {
	var l struct {
		Items []struct {
			Metadata metav1.ObjectMeta
			Status   struct{ Conditions []metav1.Condition }
		}
	}
	b, err := v.kube.Discovery().RESTClient().Get().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices").Do(ctx).Raw()
	if err == nil {
		err = json.Unmarshal(b, &l)
	}
	if err != nil {
		return err
	}
	n := 0
	for _, a := range l.Items {
		if strings.HasSuffix(a.Metadata.Name, "."+vmi.SubresourceGroup) {
			for _, c := range a.Status.Conditions {
				if c.Type != "Available" || c.Status != metav1.ConditionTrue {
					return fmt.Errorf("%s: %s is %s: %s", a.Metadata.Name, c.Type, c.Status, c.Message)
				}
				n++
			}
		}
	}
	if n != 2 {
		return fmt.Errorf("%d APIServices of %s are available, not 2", n, vmi.SubresourceGroup)
	}
	return nil
}

// available waits until both versions are, and VMIs are completed by the webhook.
func (v *verbs) available(ctx context.Context) error {
	end := time.Now().Add(timeout)
	for {
		err := v.apiServices(ctx)
		if err == nil {
			err = v.completes(ctx)
		}
		if err == nil || time.Now().After(end) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// completes says whether the webhook completes VMIs.
func (v *verbs) completes(ctx context.Context) error {
	i, err := v.vmis.VirtualMachineInstances("default").Create(ctx, guest("probe"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil && i.Spec.Domain.CPU == nil {
		err = errors.New("the webhook did not complete a VMI")
	}
	return err
}

// beside calls f where the API server is, which has a network namespace of its own. The
// thread stays there, and ends with the call.
func (v *verbs) beside(f func() error) error {
	node, err := v.cluster.Node("cp").PID()
	if err != nil {
		return err
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- func() error {
			ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", node))
			if err != nil {
				return err
			}
			defer func() { _ = ns.Close() }()
			if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
				return err
			}
			return f()
		}()
	}()
	return <-done
}

// at is a client of the port of a replica itself, as a pod of the cluster has it.
func (v *verbs) at(port int, cert *tls.Certificate) *http.Client {
	c := &tls.Config{InsecureSkipVerify: true} // as a stranger
	if cert != nil {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	}
	return &http.Client{Timeout: timeout, Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		var conn net.Conn
		err := v.beside(func() (err error) {
			conn, err = net.DialTimeout("tcp", fmt.Sprintf("%s:%d", plan.ControlPlane.Addr(), port), timeout)
			return err
		})
		return conn, err
	}}}
}

// pair is a certificate with its key of the cluster's folder.
func (v *verbs) pair(t *testing.T, name string) *tls.Certificate {
	t.Helper()
	at := filepath.Join(filepath.Dir(v.cluster.Kubeconfig), "pki", name)
	c, err := tls.LoadX509KeyPair(at+".crt", at+".key")
	require.NoError(t, err)
	return &c
}

// namespace makes one with a VM and a VMI named a, which runs.
func (v *verbs) namespace(t *testing.T) string {
	t.Helper()
	ns, err := v.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "v-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	v.guest(t, ns.Name, "a")
	return ns.Name
}

// guest makes a VMI that runs, as far as its status goes.
func (v *verbs) guest(t *testing.T, namespace, name string) *vmi.VirtualMachineInstance {
	t.Helper()
	i, err := v.vmis.VirtualMachineInstances(namespace).Create(t.Context(), guest(name), metav1.CreateOptions{})
	require.NoError(t, err)
	own, err := client.New(v.asController())
	require.NoError(t, err)
	now := i.DeepCopy()
	now.Status.SetPhase(vmi.PhaseRunning, metav1.Now())
	now.Status.NodeName = verbNode
	i, err = client.WriteStatus(t.Context(), own.VirtualMachineInstances(namespace), i, now)
	require.NoError(t, err)
	return i
}

func (v *verbs) asController() *rest.Config {
	cfg := rest.CopyConfig(v.config)
	cfg.Impersonate.UserName = "system:serviceaccount:" + home + ":virt-controller"
	return cfg
}

// account makes a service account with the role in the namespace, or with none, and
// returns a configuration with its token.
func (v *verbs) account(t *testing.T, namespace, name string, role *rbacv1.RoleRef) *rest.Config {
	t.Helper()
	_, err := v.kube.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	if role != nil {
		_, err := v.kube.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: *role,
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	cfg, err := v.withToken(t.Context(), namespace, name, nil)
	require.NoError(t, err)
	return cfg
}

// clusterRole is the reference to a role of the cluster.
func clusterRole(name string) *rbacv1.RoleRef {
	return &rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

// user is an account with Kubernetes' own role, and waits until it is in force.
func (v *verbs) user(t *testing.T, namespace, role string) *rest.Config {
	t.Helper()
	cfg := v.account(t, namespace, role, clusterRole(role))
	eventually(t, func() error {
		code, s := v.ask(t, cfg, http.MethodGet, "/apis/kubevirt.io/v1/namespaces/"+namespace+"/virtualmachineinstances/a", "")
		if code != http.StatusOK {
			return fmt.Errorf("%s", s.Message)
		}
		return nil
	})
	return cfg
}

// verbPath is the path of a verb.
func verbPath(namespace, rest string) string {
	return "/apis/" + vmi.SubresourceGroup + "/v1/namespaces/" + namespace + "/" + rest
}

// unavailable is what the API server itself answers, and passes nothing on, while it takes the
// verbs for unavailable. On a busy host it does for up to half a minute when virt-controller, or
// itself, did not run for some seconds.
const unavailable = "service unavailable"

// again waits a moment after an answer that is [unavailable], and says whether to ask once more.
func again(began time.Time) bool {
	time.Sleep(200 * time.Millisecond)
	return time.Since(began) < timeout
}

// ask sends a request to the API server, which passes it on.
func (v *verbs) ask(t *testing.T, cfg *rest.Config, method, path, body string) (int, metav1.Status) {
	t.Helper()
	c, err := rest.HTTPClientFor(cfg)
	require.NoError(t, err)
	for began := time.Now(); ; {
		if code, s := sendTo(t, c, v.config.Host+path, method, body, nil); s.Message != unavailable || !again(began) {
			return code, s
		}
	}
}

// sendTo sends a request, and returns the status with what it says.
func sendTo(t *testing.T, c *http.Client, at, method, body string, h http.Header) (int, metav1.Status) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, at, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Accept", "application/json") // of others some verbs take text
	for name, values := range h {
		r.Header[name] = values
	}
	a, err := c.Do(r)
	require.NoError(t, err)
	defer func() { _ = a.Body.Close() }()
	b, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	var s metav1.Status
	if a.StatusCode == http.StatusServiceUnavailable && strings.TrimSpace(string(b)) == unavailable {
		return a.StatusCode, metav1.Status{Message: unavailable}
	}
	if a.StatusCode >= 400 {
		require.NoError(t, json.Unmarshal(b, &s), "%d %s", a.StatusCode, b)
	}
	return a.StatusCode, s
}

// console opens the console of a VMI.
func (v *verbs) console(t *testing.T, cfg *rest.Config, namespace, name string) (net.Conn, error) {
	t.Helper()
	c, err := client.New(cfg)
	require.NoError(t, err)
	for began := time.Now(); ; {
		s, err := c.VirtualMachineInstances(namespace).Console(t.Context(), name)
		if err == nil || !strings.HasSuffix(err.Error(), strconv.Quote(unavailable)) || !again(began) {
			return s, err
		}
	}
}

// echoes says that the stream is one of a guest.
func echoes(t *testing.T, c net.Conn) {
	t.Helper()
	require.NoError(t, c.SetDeadline(time.Now().Add(timeout)))
	_, err := io.WriteString(c, "hello")
	require.NoError(t, err)
	b := make([]byte, 5)
	_, err = io.ReadFull(c, b)
	require.NoError(t, err)
	require.Equal(t, "hello", string(b))
	require.NoError(t, c.SetDeadline(time.Time{}))
}

// dial opens a connection to the API server, as a client that writes its requests itself.
func (v *verbs) dial(t *testing.T) net.Conn {
	t.Helper()
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(v.config.CAData))
	u, err := url.Parse(v.config.Host)
	require.NoError(t, err)
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: timeout}, "tcp", u.Host, &tls.Config{RootCAs: roots, NextProtos: []string{"http/1.1"}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// played are the guests of the node. Their streams echo, but what the name of the VMI says.
type played struct {
	mu    sync.Mutex
	open  map[net.Conn]string // the streams, with the keys of their VMIs
	calls int
}

func (p *played) Stream(_ context.Context, of protocol.Target, s protocol.Stream) (net.Conn, error) {
	near, far := net.Pipe()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	p.open[far] = of.Key()
	go func() {
		defer func() {
			_ = far.Close()
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.open, far)
		}()
		if s == protocol.StreamScreenshot {
			_, _ = io.WriteString(far, "\x89PNG\r\n\x1a\nand so on")
			for block := bytes.Repeat([]byte("x"), 64<<10); of.Name == "endless"; {
				if _, err := far.Write(block); err != nil {
					return
				}
			}
			return
		}
		_, _ = io.Copy(far, far)
	}()
	return near, nil
}

func (p *played) Call(_ context.Context, of protocol.Target, _ protocol.Call, _ json.RawMessage) (json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	if of.Name == "endless" {
		return json.RawMessage(`"` + strings.Repeat("x", 4<<20) + `"`), nil
	}
	return nil, nil
}

// called is how often a handler was called.
func (p *played) called() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// streams is how many streams of the VMI are open.
func (p *played) streams(key string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.open {
		if k == key {
			n++
		}
	}
	return n
}

// stop ends the streams of a VMI, as the end of its launcher does.
func (p *played) stop(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c, k := range p.open {
		if k == key {
			_ = c.Close()
		}
	}
}
