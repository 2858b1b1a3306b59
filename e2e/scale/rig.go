package scale

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/podvisor/podvisor/e2e/audit"
	"github.com/podvisor/podvisor/e2e/cluster"
	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/e2e/kubectl"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// home is the namespace of Podvisor, and namespace that of what is measured.
const home, namespace = "kubevirt", "scale"

// launcherImage is what the policies permit launcher pods to have. Nothing pulls it.
const launcherImage = "podvisor/virt-launcher:v1"

// Config says what is measured and where.
type Config struct {
	// Name is the cluster's name. Required.
	Name string
	// Root is the folder of the repository. Required.
	Root string
	// Counts are how many objects there are in each run. Required.
	Counts []int
	// Kinds are which objects: "vmi", "vm", "pool", the VMs of one pool, or "pod", pods of the
	// shape of launchers that are nothing to Podvisor. Required.
	Kinds []string
	// Handlers is how many VMIs one node with a real virt-handler gets. 0: that is left out.
	Handlers int
	// PerNode is how many VMIs a simulated node has. 0: 100.
	PerNode int
	// Users is how many objects are created or deleted at the same time. 0: 20.
	Users int
	// Idle is how long all run and nothing is done. 0: a minute.
	Idle time.Duration
	// Profiles is a folder for profiles of virt-controller and of kube-apiserver. Empty:
	// none are made. Profiled programs take longer.
	Profiles string
	// Out gets the progress and the tables. Required.
	Out io.Writer
}

// rig is the API server with virt-controller.
type rig struct {
	Config
	cluster *cluster.Cluster
	access  *rest.Config
	kube    kubernetes.Interface
	meta    metadata.Interface
	vmis    *client.Client
	dir     string // for everything that is written
	audit   audit.Follower
	log     map[string]counts // requests so far, by component
	started []*program
	// repeated counts the requests of users that failed and were repeated.
	repeated atomic.Int64

	controller      *program
	apiserver, etcd int // processes
}

// up starts everything that is measured.
func up(ctx context.Context, c Config) (r *rig, err error) {
	c.PerNode, c.Users, c.Idle = cmp.Or(c.PerNode, 100), cmp.Or(c.Users, 20), cmp.Or(c.Idle, time.Minute)
	r = &rig{Config: c, log: map[string]counts{}}
	if r.dir, err = os.MkdirTemp("", "scale"); err != nil {
		return r, err
	}
	// The user of launchers has to enter it.
	if err := os.Chmod(r.dir, 0o755); err != nil {
		return r, err
	}
	if err := r.build(ctx); err != nil {
		return r, err
	}
	if r.cluster, err = cluster.Up(ctx, cluster.Config{Name: c.Name, Extent: plan.APIServer, Out: c.Out}); err != nil {
		return r, err
	}
	r.audit.Path = r.cluster.AuditLog
	if err := r.connect(); err != nil {
		return r, err
	}
	if err := r.apply(ctx); err != nil {
		return r, err
	}
	if err := r.makeObjects(ctx); err != nil {
		return r, err
	}
	if err := r.startControllers(ctx); err != nil {
		return r, err
	}
	cp, err := r.cluster.Node("cp").PID()
	if err != nil {
		return r, err
	}
	if r.apiserver, err = childNamed(cp, "kube-apiserver"); err != nil {
		return r, err
	}
	if r.etcd, err = childNamed(cp, "etcd"); err != nil {
		return r, err
	}
	return r, r.inForce(ctx)
}

// apply applies the manifests. On a busy host the first requests of an API server may take longer
// than it lets them.
func (r *rig) apply(ctx context.Context) (err error) {
	k := kubectl.Kubectl{Path: r.cluster.Kubectl, Kubeconfig: r.cluster.Kubeconfig}
	for range 5 {
		if _, err = k.Run(ctx, "apply", "--server-side", "-k", filepath.Join(r.Root, "manifests")); err == nil {
			return nil
		}
	}
	return err
}

// down ends everything.
func (r *rig) down(ctx context.Context) error {
	var errs []error
	for _, c := range r.started {
		errs = append(errs, c.stop())
	}
	if r.cluster != nil {
		errs = append(errs, r.cluster.Down(ctx))
	}
	if r.dir != "" {
		errs = append(errs, os.RemoveAll(r.dir))
	}
	return errors.Join(errs...)
}

// profiled is what a profiled program has beside its own code: profiles at a socket.
const profiled = `package main

import (
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
)

func init() {
	if l, err := net.Listen("unix", os.Getenv("PROFILE_SOCKET")); err == nil {
		go func() { _ = http.Serve(l, nil) }()
	}
}
`

// build builds Podvisor's programs as the images have them.
func (r *rig) build(ctx context.Context) error {
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", r.dir + "/"}
	if r.Profiles != "" {
		source, overlay := filepath.Join(r.dir, "profile.go"), filepath.Join(r.dir, "overlay.json")
		root, err := filepath.Abs(r.Root)
		if err != nil {
			return err
		}
		replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, "cmd/virt-controller/profile.go"): source}})
		if err != nil {
			return err
		}
		if err := errors.Join(os.WriteFile(source, []byte(profiled), 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
			return err
		}
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/virt-controller", "./cmd/virt-handler")...)
	cmd.Dir = r.Root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build virt-controller and virt-handler: %w: %s", err, out)
	}
	return nil
}

func (r *rig) connect() (err error) {
	if r.access, err = clientcmd.BuildConfigFromFlags("", r.cluster.Kubeconfig); err != nil {
		return err
	}
	r.access.QPS, r.access.UserAgent = -1, "users"
	if r.kube, err = kubernetes.NewForConfig(r.access); err != nil {
		return err
	}
	if r.vmis, err = client.New(r.access); err != nil {
		return err
	}
	r.meta, err = metadata.NewForConfig(r.as("garbage-collector"))
	return err
}

// as is the configuration of an administrator's client with another name.
func (r *rig) as(name string) *rest.Config {
	c := rest.CopyConfig(r.access)
	c.UserAgent = name
	return c
}

// makeObjects makes what controllers of Kubernetes make elsewhere: the account of the tenant's
// namespace, and the endpoints of the Service of the webhooks.
func (r *rig) makeObjects(ctx context.Context) error {
	_, err := r.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	if err == nil {
		_, err = r.kube.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	}
	if err == nil {
		_, err = r.kube.DiscoveryV1().EndpointSlices(home).Create(ctx, &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: "virt-controller", Labels: map[string]string{discoveryv1.LabelServiceName: "virt-controller"}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{plan.ControlPlane.Addr().String()}}},
			Ports:       []discoveryv1.EndpointPort{{Name: new("webhooks"), Port: new(int32(8443))}},
		}, metav1.CreateOptions{})
	}
	return err
}

// startControllers starts virt-certificates and virt-controller, as their pods do.
func (r *rig) startControllers(ctx context.Context) error {
	if _, err := r.start(ctx, "virt-certificates", nil, "virt-controller", "certificates"); err != nil {
		return err
	}
	var err error
	r.controller, err = r.start(ctx, "virt-controller", []string{
		"LAUNCHER_IMAGE=" + launcherImage, "ALLOW_EMULATION=true", "CONTAINER_DISKS=auto", "GOMEMLIMIT=900MiB", "GOGC=200", "POD_NAME=virt-controller",
		"PROFILE_SOCKET=" + r.profileSocket(),
	}, "virt-controller")
	return err
}

// start starts one of Podvisor's programs where the API server is, with a token of its account.
func (r *rig) start(ctx context.Context, account string, env []string, command string, args ...string) (*program, error) {
	token, err := r.token(ctx, account, "")
	if err != nil {
		return nil, err
	}
	return r.startWith(account, token, env, command, args...)
}

func (r *rig) startWith(name, token string, env []string, command string, args ...string) (*program, error) {
	config := filepath.Join(r.dir, name+".kubeconfig")
	if err := r.writeKubeconfig(config, token); err != nil {
		return nil, err
	}
	cp, err := r.cluster.Node("cp").PID()
	if err != nil {
		return nil, err
	}
	p, err := startProgram(func() *exec.Cmd {
		cmd := exec.Command("nsenter", append([]string{"--target", strconv.Itoa(cp), "--net", "--", filepath.Join(r.dir, command)},
			append(args, "--kubeconfig", config)...)...)
		cmd.Env = append(append(os.Environ(), "POD_NAMESPACE="+home), env...)
		return cmd
	}, filepath.Join(r.dir, name+".log"))
	if err != nil {
		return nil, err
	}
	r.started = append(r.started, p)
	return p, nil
}

func (r *rig) profileSocket() string { return filepath.Join(r.dir, "profile.sock") }

// token is a token of an account, for a pod on a node if one is named.
func (r *rig) token(ctx context.Context, account, node string) (string, error) {
	t := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(6 * 3600))}}
	if node != "" {
		p, err := r.kube.CoreV1().Pods(home).Get(ctx, "virt-handler-"+node, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		t.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.Name, UID: p.UID}
	}
	t, err := r.kube.CoreV1().ServiceAccounts(home).CreateToken(ctx, account, t, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of %s: %w", account, err)
	}
	return t.Status.Token, nil
}

// writeKubeconfig writes the configuration of a client inside the cluster.
func (r *rig) writeKubeconfig(path, token string) error {
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: plan.Server, CertificateAuthorityData: r.access.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, path)
}

// inForce waits until the webhooks complete VMIs and refuse bad ones, and the policies hold.
func (r *rig) inForce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for {
		err := r.tryOut(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the webhooks and policies: %w; %s", err, r.logEnd("virt-controller"))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (r *rig) tryOut(ctx context.Context) error {
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	all := r.vmis.VirtualMachineInstances(namespace)
	v, err := all.Create(ctx, guest("probe"), dryRun)
	if err != nil {
		return err
	}
	if v.Spec.Domain.CPU == nil || len(v.Finalizers) == 0 {
		return errors.New("the VMI was not completed")
	}
	bad := guest("probe")
	bad.Spec.Domain.Devices.Disks = append(bad.Spec.Domain.Devices.Disks, vmi.Disk{Name: "nowhere"})
	if _, err := all.Create(ctx, bad, dryRun); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) && !apierrors.IsBadRequest(err) {
		return fmt.Errorf("the VMI was not validated: %w", err)
	}
	labelled := guest("probe")
	labelled.Labels = map[string]string{vmi.CreatedByLabel: "x"}
	if _, err := all.Create(ctx, labelled, dryRun); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("the policies do not hold: %w", err)
	}
	return nil
}

// logEnd is the end of the log of a program.
func (r *rig) logEnd(name string) string {
	text, _ := os.ReadFile(filepath.Join(r.dir, name+".log"))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return name + " says: " + strings.Join(lines[max(0, len(lines)-3):], "; ")
}

// guest is a VMI as tenants have them: a disk, cloud-init, the network of the pod.
func guest(name string) *vmi.VirtualMachineInstance {
	v := vmitest.New(vmitest.WithName(name), vmitest.WithContainerDisk("root", "example/fedora:40"), vmitest.WithMasquerade("default"),
		vmitest.WithCloudInit("seed", "#cloud-config\nhostname: "+name+"\n"))
	v.Namespace, v.UID = "", ""
	return v
}
