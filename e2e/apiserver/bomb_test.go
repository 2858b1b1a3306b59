package apiserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/internal/certificate"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/vmi"
)

// program is a process of Podvisor beside the API server of an installation.
type program struct {
	e    elsewhere
	name string
	cmd  *exec.Cmd
	log  bytes.Buffer
}

// buildController builds virt-controller and returns the file.
func buildController(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "virt-controller")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", file, "./cmd/virt-controller")
	build.Dir = "../.."
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return file
}

// start runs the program of a Deployment until the test ends, in the network of the
// API server, with a token of its account and with the environment that the Deployment
// sets.
func (e elsewhere) start(file, deployment string, args ...string) *program {
	t := e.t
	t.Helper()
	d, err := e.kube.AppsV1().Deployments(otherNamespace).Get(t.Context(), deployment, metav1.GetOptions{})
	require.NoError(t, err)
	spec := d.Spec.Template.Spec
	pid, err := e.cluster.Node("cp").PID()
	require.NoError(t, err)
	p := &program{e: e, name: deployment}
	args = append(append([]string{fmt.Sprintf("--net=/proc/%d/ns/net", pid), "--", file}, spec.Containers[0].Command[1:]...), args...)
	args = append(args, "--kubeconfig", e.kubeconfigOf(spec.ServiceAccountName), "--namespace", otherNamespace)
	p.cmd = exec.Command("nsenter", args...)
	p.cmd.Env = os.Environ()
	for _, v := range spec.Containers[0].Env {
		if v.ValueFrom == nil {
			p.cmd.Env = append(p.cmd.Env, v.Name+"="+v.Value)
		}
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		if t.Failed() {
			log := p.log.String()
			t.Logf("%s:\n%s", deployment, log[max(0, len(log)-3000):])
		}
	})
	return p
}

// kubeconfigOf writes a file with a token of the account.
func (e elsewhere) kubeconfigOf(account string) string {
	e.t.Helper()
	r, err := e.kube.CoreV1().ServiceAccounts(otherNamespace).CreateToken(e.t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(e.t, err)
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: plan.Server, CertificateAuthorityData: e.config.CAData, CertificateAuthority: e.config.CAFile}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: r.Status.Token}
	c.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "x"
	file := filepath.Join(e.t.TempDir(), "kubeconfig")
	require.NoError(e.t, clientcmd.WriteToFile(*c, file))
	return file
}

// most is the most memory that the process had, in MiB.
func (p *program) most() int {
	p.e.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	require.NoError(p.e.t, err)
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.Atoi(strings.Fields(text)[0])
			require.NoError(p.e.t, err)
			return kb / 1024
		}
	}
	require.Fail(p.e.t, "the process has ended", p.log.String())
	return 0
}

// route makes the Service of virt-controller lead to the port.
func (e elsewhere) route(port int) {
	_, err := e.kube.DiscoveryV1().EndpointSlices(otherNamespace).Create(e.t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "virt-controller", Labels: map[string]string{discoveryv1.LabelServiceName: "virt-controller"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{plan.ControlPlane.Addr().String()}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("webhooks"), Port: new(int32(port))}},
	}, metav1.CreateOptions{})
	require.NoError(e.t, err)
}

// bomb is a review, or an object, of about so many bytes with disks that have
// nothing.
func bombOf(size int) []byte {
	return []byte(`{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstance","metadata":{"generateName":"bomb-"},"spec":{"domain":{"devices":{"disks":[` +
		strings.TrimSuffix(strings.Repeat("{},", size/3), ",") + `]}}}}`)
}

func reviewOf(t *testing.T, object []byte) []byte {
	t.Helper()
	body, err := json.Marshal(admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
		UID: "1", Name: "vm", Namespace: "default", Operation: admissionv1.Create,
		Kind: metav1.GroupVersionKind{Group: vmi.GroupName, Version: "v1", Kind: vmi.VirtualMachineInstances.Kind}, Object: kruntime.RawExtension{Raw: object},
	}})
	require.NoError(t, err)
	return body
}

// flood sends the body again and again, so many times at once and in all, each with a
// connection of its own, until all are answered. It returns how many answers of each
// kind there were.
func (p pods) flood(ctx context.Context, atOnce, all int, url string, body []byte) map[string]int {
	var wg sync.WaitGroup
	var mu sync.Mutex // protects answers
	answers := map[string]int{}
	next := make(chan struct{})
	for range atOnce {
		wg.Go(func() {
			for range next {
				answer := "cut off"
				if status, err := p.post(ctx, url, body); err == nil {
					answer = http.StatusText(status)
				}
				mu.Lock()
				answers[answer]++
				mu.Unlock()
			}
		})
	}
	for range all {
		next <- struct{}{}
	}
	close(next)
	wg.Wait()
	return answers
}

// pods is the network that the pods of the installation could be in.
type pods struct{ namespace string }

func (e elsewhere) pods() pods {
	e.t.Helper()
	pid, err := e.cluster.Node("cp").PID()
	require.NoError(e.t, err)
	return pods{fmt.Sprintf("/proc/%d/ns/net", pid)}
}

// dial connects from that network.
func (p pods) dial(ctx context.Context, network, address string) (net.Conn, error) {
	type result struct {
		c   net.Conn
		err error
	}
	done := make(chan result, 1)
	go func() {
		runtime.LockOSThread() // the thread stays in the namespace, and ends with this function
		f, err := os.Open(p.namespace)
		if err != nil {
			done <- result{nil, err}
			return
		}
		defer func() { _ = f.Close() }()
		if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- result{nil, err}
			return
		}
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		done <- result{c, err}
	}()
	r := <-done
	return r.c, r.err
}

// post sends a body over a connection of its own, reads the whole answer and returns
// its status.
func (p pods) post(ctx context.Context, url string, body []byte) (int, error) {
	client := &http.Client{Transport: &http.Transport{DialContext: p.dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}, Timeout: timeout}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// TestAttackMemoryBombs has virt-controller itself, as it is built and installed, read
// objects with millions of elements: sent by a pod that knows no secret, by one that
// has learned it, and by a tenant through the API server.
func TestAttackMemoryBombs(t *testing.T) {
	t.Parallel()
	e := installElsewhere(t, "bombs")
	file := buildController(t)
	probe := listenInCluster(t, e.cluster.Name)
	port := probe.Addr().(*net.TCPAddr).Port
	require.NoError(t, probe.Close())
	address := net.JoinHostPort(plan.ControlPlane.Addr().String(), strconv.Itoa(port))
	kept := e.start(file, "virt-certificates")
	controller := e.start(file, "virt-controller", "--listen", address)
	e.route(port)
	tenant, from := e.tenant("bombs"), e.pods()
	vmis := "/apis/kubevirt.io/v1/namespaces/bombs/virtualmachineinstances"
	good := []byte(`{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstance","metadata":{"name":"good"},"spec":{"domain":{"memory":{"guest":"64Mi"},"devices":{}}}}`)
	// create creates a VMI as a dry run, and says whether it was completed.
	create := func(object []byte) (completed bool, err error) {
		r := tenant.CoreV1().RESTClient().Post().AbsPath(vmis).Param("dryRun", "All").
			SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").Body(object).Do(t.Context())
		raw, _ := r.Raw()
		return bytes.Contains(raw, []byte(`"sockets"`)), r.Error()
	}
	inForce := func() error {
		completed, err := create(good)
		if err == nil && !completed {
			err = errors.New("the webhooks are not in force")
		}
		return err
	}
	eventually(t, inForce)
	before := controller.most()
	secret, err := e.kube.CoreV1().Secrets(otherNamespace).Get(t.Context(), certificate.ServingSecret, metav1.GetOptions{})
	require.NoError(t, err)
	base := "https://" + address
	path := base + certificate.Path("defaults", string(secret.Data[certificate.PathKey]))
	small := reviewOf(t, good)

	atOnce, all, viaAPI, most := 100, 100, 2, time.Minute // a busy host may take seconds for anything
	if testenv.Long() {
		all, viaAPI, most = 2000, 100, 3*time.Second
	}
	// A correct review takes long on a busy host without any attack too.
	start := time.Now()
	for range 10 {
		_, err := from.post(t.Context(), path, small)
		require.NoError(t, err)
	}
	usual := time.Since(start) / 10
	most = max(most, 100*usual)
	t.Logf("without an attack, a correct review takes %v", usual.Round(time.Millisecond))
	// beside sends correct reviews while the attack lasts, and returns how long the
	// slowest took.
	beside := func(what string, attack func() map[string]int) {
		t.Helper()
		var slowest time.Duration
		n, done := 0, make(chan map[string]int, 1)
		began := time.Now()
		go func() { done <- attack() }()
		for {
			start := time.Now()
			status, err := from.post(t.Context(), path, small)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, status)
			slowest = max(slowest, time.Since(start))
			n++
			select {
			case answers := <-done:
				t.Logf("%s: %v in %v; beside them %d correct reviews, the slowest took %v; virt-controller had %d MiB at most, and %d before",
					what, answers, time.Since(began).Round(time.Millisecond), n, slowest.Round(time.Millisecond), controller.most(), before)
				require.Less(t, controller.most(), 128)
				require.Less(t, slowest, most, "beside the attack")
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	beside("8 MB from a pod", func() map[string]int {
		return from.flood(t.Context(), atOnce, all, base+"/admission/defaults", bombOf(8<<20))
	})
	beside("8 MB from a pod that guesses", func() map[string]int {
		return from.flood(t.Context(), atOnce, all, base+"/admission/defaults/guessed", bombOf(8<<20))
	})
	beside("2.7 MB at the secret path", func() map[string]int {
		return from.flood(t.Context(), atOnce, all, path, reviewOf(t, bombOf(2_700_000)))
	})
	beside("1.5 MB of long strings at the secret path", func() map[string]int {
		object := strings.Replace(string(good), `"spec":{`, `"spec":{"nodeSelector":{"a":"`+strings.Repeat(strings.Repeat("x", 200<<10)+`","b":"`, 7)+`"},`, 1)
		return from.flood(t.Context(), atOnce, all/2, path, reviewOf(t, []byte(object)))
	})
	beside("20,000 values at the secret path", func() map[string]int {
		var labels strings.Builder
		for i := range 19_000 {
			fmt.Fprintf(&labels, `"k%d":"v",`, i)
		}
		object := strings.Replace(string(good), `"metadata":{`, `"metadata":{"annotations":{`+strings.TrimSuffix(labels.String(), ",")+`},`, 1)
		return from.flood(t.Context(), atOnce, all/2, path, reviewOf(t, []byte(object)))
	})
	beside("2.7 MB from a tenant, through the API server", func() map[string]int {
		var wg sync.WaitGroup
		var mu sync.Mutex // protects answers
		answers, object := map[string]int{}, bombOf(2_700_000)
		for range viaAPI {
			wg.Go(func() {
				_, err := create(object)
				answer := "accepted"
				if err != nil {
					answer = err.Error()
					answer = answer[:min(len(answer), 120)]
				}
				mu.Lock()
				answers[answer]++
				mu.Unlock()
			})
		}
		wg.Wait()
		return answers
	})
	t.Logf("virt-certificates had %d MiB at most", kept.most())
	require.Less(t, kept.most(), 96)
	eventually(t, inForce)
}

// tenant makes a namespace and a user with the right to create VMIs there.
func (e elsewhere) tenant(namespace string) kubernetes.Interface {
	t := e.t
	t.Helper()
	_, err := e.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = e.kube.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "tenant"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kubevirt.io:edit"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "tenant"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	cfg := rest.CopyConfig(e.config)
	cfg.Impersonate.UserName = "tenant"
	cfg.QPS = -1
	kube, err := kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	return kube
}
