package fault

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/podvisor/podvisor/e2e/cluster"
	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/internal/certificate"
	"github.com/podvisor/podvisor/vmi/client"
)

// home is the namespace of the installation.
const home = "kubevirt"

// prefix begins the names of the namespaces.
var prefix = "p" + strconv.FormatUint(rand.Uint64()>>44, 36)

// world is what all points share: the API server with the manifests, the programs, and who
// plays the nodes.
var world struct {
	cluster *cluster.Cluster
	config  *rest.Config // of an administrator
	kube    kubernetes.Interface
	vmis    *client.Client
	dir     string // of files
	server  *url.URL
	toward  http.RoundTripper
	// shown and overdue are certificates that name an API server, and trusted is a file
	// of their authorities.
	shown, overdue *tls.Certificate
	trusted        string
	token          *token
	serving        *corev1.Secret
	role           *rbacv1.Role
	reviews        *reviews
	nodes          *nodes
	err            error
}

func TestMain(m *testing.M) {
	if os.Getenv(launcherName) != "" {
		os.Exit(runLauncher())
	}
	flag.Parse()
	if os.Geteuid() != 0 {
		os.Exit(m.Run())
	}
	ctx, cancel := context.WithCancel(context.Background())
	world.err = setUp(ctx)
	code := m.Run()
	cancel()
	if world.nodes != nil {
		world.nodes.wait()
	}
	if err := os.RemoveAll(world.dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if world.cluster != nil && os.Getenv("KEEP") == "" {
		if err := world.cluster.Down(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "remove the cluster:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

func setUp(ctx context.Context) (err error) {
	if world.dir, err = os.MkdirTemp("", "fault"); err != nil {
		return err
	}
	if err := os.Chmod(world.dir, 0o711); err != nil { // launchers are other users
		return err
	}
	name := cmp.Or(os.Getenv("CLUSTER"), "test") + "-fault"
	if world.cluster, err = cluster.Up(ctx, cluster.Config{Name: name, Extent: plan.APIServer, Out: os.Stdout}); err != nil {
		return err
	}
	if world.config, err = clientcmd.BuildConfigFromFlags("", world.cluster.Kubeconfig); err != nil {
		return err
	}
	world.config.QPS = -1
	if world.kube, world.vmis, err = clients(world.config); err != nil {
		return err
	}
	return errors.Join(apply(ctx, "-k", "../../manifests"), buildPrograms(ctx), certificates(), way(), setUpInstallation(ctx))
}

func clients(c *rest.Config) (kubernetes.Interface, *client.Client, error) {
	kube, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, nil, err
	}
	vmis, err := client.New(c)
	return kube, vmis, err
}

func apply(ctx context.Context, args ...string) error {
	c := exec.CommandContext(ctx, world.cluster.Kubectl, append([]string{"--kubeconfig", world.cluster.Kubeconfig, "apply", "--server-side"}, args...)...)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("apply %q: %w: %s", args, err, out)
	}
	return nil
}

// buildPrograms links the components as for their images.
func buildPrograms(ctx context.Context) error {
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", world.dir+"/", "./cmd/virt-controller", "./cmd/virt-handler")
	c.Dir = "../.."
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build the components: %w: %s", err, out)
	}
	return nil
}

// certificates makes what proxies show: a valid certificate and one that has expired.
func certificates() error {
	var authorities []byte
	issue := func(at time.Time) (*tls.Certificate, error) {
		b, _, err := certificate.Policy{Name: "kubernetes", Hosts: []string{serverName}}.Renew(certificate.Bundle{}, at)
		if err != nil {
			return nil, err
		}
		authorities = append(authorities, b.Authorities...)
		return b.KeyPair()
	}
	var err error
	if world.shown, err = issue(time.Now()); err != nil {
		return err
	}
	if world.overdue, err = issue(time.Now().AddDate(-20, 0, 0)); err != nil {
		return err
	}
	world.trusted = filepath.Join(world.dir, "ca.crt")
	return os.WriteFile(world.trusted, authorities, 0o600)
}

// serverName is what the API server is called in the certificates of proxies.
const serverName = "kubernetes.default.svc"

// way finds the way from proxies to the API server.
func way() (err error) {
	anonymous := rest.AnonymousClientConfig(world.config)
	if world.toward, err = rest.TransportFor(anonymous); err != nil {
		return err
	}
	world.server, err = url.Parse(anonymous.Host)
	return err
}

// setUpInstallation does what makes the manifests work: virt-certificates runs, the
// webhooks are answered, and there is a node.
func setUpInstallation(ctx context.Context) (err error) {
	if world.token, err = controllerToken(ctx); err != nil {
		return err
	}
	if err := keepCertificates(ctx); err != nil {
		return err
	}
	if world.role, err = world.kube.RbacV1().Roles(home).Get(ctx, "virt-controller", metav1.GetOptions{}); err != nil {
		return err
	}
	if world.reviews, err = answerReviews(ctx); err != nil {
		return err
	}
	if err := errors.Join(makeNode(ctx, "n1"), makeNode(ctx, "n2")); err != nil {
		return err
	}
	world.nodes, err = play(ctx)
	return err
}

// controllerToken is the token of virt-controller, bound to a pod: only so may it request those
// by which it calls handlers.
func controllerToken(ctx context.Context) (*token, error) {
	p, err := world.kube.CoreV1().Pods(home).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "virt-controller-"},
		Spec: corev1.PodSpec{NodeName: "n1", ServiceAccountName: "virt-controller", AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "virt-controller", Image: "example/virt-controller:v1"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return newToken(ctx, "virt-controller", &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.Name, UID: p.UID})
}

// token is the token of an account that one process after the other uses.
type token struct {
	account string
	bound   *authenticationv1.BoundObjectReference
	last    string
}

func newToken(ctx context.Context, account string, bound *authenticationv1.BoundObjectReference) (*token, error) {
	t := &token{account: account, bound: bound}
	var err error
	t.last, err = t.another(ctx)
	return t, err
}

// another issues another token.
func (t *token) another(ctx context.Context) (string, error) {
	asked := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: t.bound}}
	r, err := world.kube.CoreV1().ServiceAccounts(home).CreateToken(ctx, t.account, asked, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("issue a token of %s: %w", t.account, err)
	}
	return r.Status.Token, nil
}

// kubeconfig writes a file by which a program finds the server, with a token in another file.
func kubeconfig(path, server, authorities, name, tokenFile string) error {
	return os.WriteFile(path, fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: c}}]
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q, tls-server-name: %q}}]
users: [{name: c, user: {tokenFile: %q}}]
`, server, authorities, name, tokenFile), 0o600)
}

// keepCertificates runs virt-certificates until the webhooks have an authority.
func keepCertificates(ctx context.Context) error {
	t, err := newToken(ctx, "virt-certificates", nil)
	if err != nil {
		return err
	}
	files := filepath.Join(world.dir, "certificates")
	if err := errors.Join(os.WriteFile(files+".token", []byte(t.last), 0o600), os.WriteFile(files+".ca", world.config.CAData, 0o600),
		kubeconfig(files+".kubeconfig", world.config.Host, files+".ca", "", files+".token")); err != nil {
		return err
	}
	var out bytes.Buffer
	c := exec.CommandContext(ctx, filepath.Join(world.dir, "virt-controller"), "certificates", "-kubeconfig", files+".kubeconfig", "-namespace", home)
	c.Stderr = &out
	if err := c.Start(); err != nil {
		return err
	}
	defer func() { _ = errors.Join(c.Process.Kill(), c.Wait()) }()
	end := time.Now().Add(time.Minute)
	for {
		world.serving, err = world.kube.CoreV1().Secrets(home).Get(ctx, certificate.ServingSecret, metav1.GetOptions{})
		if err == nil && len(world.serving.Data[corev1.TLSCertKey]) > 0 {
			w, err := world.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, certificate.Webhooks, metav1.GetOptions{})
			if err == nil && len(w.Webhooks) > 0 && len(w.Webhooks[0].ClientConfig.CABundle) > 0 {
				return nil
			}
		}
		if time.Now().After(end) {
			return fmt.Errorf("wait for the certificates: %w: %s", err, out.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
}
