package subresource_test

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/scheduler/guest"
	"github.com/podvisor/podvisor/scheduler/subresource"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	vmifake "github.com/podvisor/podvisor/vmi/client/fake"
)

// authority signs client certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "front"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	require.NoError(t, err)
	c, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	return authority{c, key}
}

func (a authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

func (a authority) issue(t *testing.T, name string) *tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), a.key)
	require.NoError(t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// echo are nodes whose streams echo.
type echo struct {
	calls chan string
	// refuses has the errors of the next calls and streams.
	refuses chan error
	// streams are the ports that are opened.
	streams chan protocol.Stream
	// guest is that of all streams, which end with it.
	guest context.Context //nolint:containedctx // it stands for a process
}

func (e echo) Stream(_ context.Context, _ *vmi.VirtualMachineInstance, name protocol.Stream) (net.Conn, error) {
	if _, _, is := name.Port(); is {
		select {
		case err := <-e.refuses:
			return nil, err
		default:
			e.streams <- name
		}
	}
	a, b := net.Pipe()
	go func() {
		defer context.AfterFunc(e.guest, func() { _ = b.Close() })()
		_, _ = io.Copy(b, b)
		_ = b.Close()
	}()
	return a, nil
}

func (e echo) Call(_ context.Context, _ *vmi.VirtualMachineInstance, name protocol.Call, _, _ any) error {
	select {
	case err := <-e.refuses:
		return err
	default:
		e.calls <- string(name)
		return nil
	}
}

// world is a server behind real TLS.
type world struct {
	t       *testing.T
	url     string
	front   authority
	reviews chan authorizationv1.SubjectAccessReviewSpec
	nodes   echo
	store   *vmifake.Server
	// unanswered is how many of the next requests to the store fail.
	unanswered atomic.Int32
	vmis       *client.Client
	kube       *fake.Clientset
	// end ends the server and waits until it has.
	end func()
	// endGuest ends the guest of all streams.
	endGuest func()
}

// roundTripper is a transport in one function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func newWorld(t *testing.T, objects ...vmi.Object) *world {
	return newWorldWith(t, subresource.Config{}, objects...)
}

// newWorldWith makes a world with the limits of c.
func newWorldWith(t *testing.T, c subresource.Config, objects ...vmi.Object) *world {
	guests, endGuest := context.WithCancel(context.Background())
	t.Cleanup(endGuest)
	w := &world{
		t: t, front: newAuthority(t), reviews: make(chan authorizationv1.SubjectAccessReviewSpec, 10_000),
		nodes: echo{make(chan string, 10), make(chan error, 10), make(chan protocol.Stream, 10), guests}, endGuest: endGuest,
	}
	kube := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication"}, Data: map[string]string{
		"requestheader-client-ca-file": w.front.pem(), "requestheader-allowed-names": `["aggregator"]`,
		"requestheader-username-headers": `["X-Remote-User"]`, "requestheader-group-headers": `["X-Remote-Group"]`,
		"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
	}})
	w.kube = kube
	kube.PrependReactor("create", "subjectaccessreviews", func(a kubetesting.Action) (bool, runtime.Object, error) {
		r := a.(kubetesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		w.reviews <- r.Spec
		r.Status.Allowed = r.Spec.User == "alice"
		return true, r, nil
	})
	var err error
	w.store = vmifake.New(objects...)
	cfg := w.store.Config()
	cfg.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		if w.unanswered.Add(-1) >= 0 {
			return nil, errors.New("the API server does not answer")
		}
		return w.store.RoundTrip(r)
	})
	w.vmis, err = client.New(cfg)
	require.NoError(t, err)
	c.Client, c.Kube, c.Guests, c.ConfigVersion = w.vmis, kube, guest.Guests{Nodes: w.nodes}, func() string { return "42" }
	s, err := subresource.New(c)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Run(ctx) }()
	server := httptest.NewUnstartedServer(s)
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.Config.ReadHeaderTimeout = cmp.Or(c.Idle, time.Minute)
	server.StartTLS()
	w.end = func() { cancel(); <-done }
	t.Cleanup(func() { w.end(); server.Close() })
	require.Eventually(t, func() bool { return s.Ready() == nil }, time.Minute, 5*time.Millisecond)
	w.url = server.URL
	return w
}

func config(cert *tls.Certificate) *tls.Config {
	c := &tls.Config{InsecureSkipVerify: true} // of a test
	if cert != nil {
		c.Certificates = []tls.Certificate{*cert}
	}
	return c
}

const api = "/apis/subresources.kubevirt.io/v1"

func (w *world) do(cert *tls.Certificate, h http.Header, method, path, body string) (int, metav1.Status) {
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	require.NoError(w.t, err)
	r.Header = h
	tr := &http.Transport{TLSClientConfig: config(cert)}
	defer tr.CloseIdleConnections()
	a, err := tr.RoundTrip(r)
	require.NoError(w.t, err)
	defer func() { _ = a.Body.Close() }()
	b, err := io.ReadAll(a.Body)
	require.NoError(w.t, err)
	var s metav1.Status
	if a.StatusCode >= 400 {
		require.Less(w.t, len(b), 1024)
		require.NoError(w.t, json.Unmarshal(b, &s), "%s", b)
	}
	return a.StatusCode, s
}

func alice() http.Header {
	return http.Header{"X-Remote-User": {"alice"}, "X-Remote-Group": {"users", "system:authenticated"}, "X-Remote-Extra-A%2fb": {"c"}}
}

func vm(s vmi.RunStrategy) *vmi.VirtualMachine {
	return &vmi.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x"},
		Spec: vmi.VirtualMachineSpec{RunStrategy: &s, Template: &vmi.VirtualMachineInstanceTemplateSpec{}}}
}

func running() *vmi.VirtualMachineInstance {
	return &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x"}, Status: vmi.VirtualMachineInstanceStatus{Phase: vmi.PhaseRunning, NodeName: "n"}}
}

func TestAttackRequestsAroundTheAggregatorAreRefused(t *testing.T) {
	w := newWorld(t, vm(vmi.RunHalted))
	right, twice, none := w.front.issue(t, "aggregator"), alice(), alice()
	twice["X-Remote-User"] = []string{"alice", "admin"}
	delete(none, "X-Remote-User")
	none["X_Remote_User"] = []string{"alice"}
	noGroups := alice()
	delete(noGroups, "X-Remote-Group")
	for name, tt := range map[string]struct {
		cert   *tls.Certificate
		header http.Header
	}{
		"no certificate":              {nil, alice()},
		"another authority":           {newAuthority(t).issue(t, "aggregator"), alice()},
		"another name":                {w.front.issue(t, "kubelet"), alice()},
		"two users":                   {right, twice},
		"a header with low lines":     {right, none},
		"no groups":                   {right, noGroups},
		"the aggregator without user": {right, http.Header{}},
	} {
		t.Run(name, func(t *testing.T) {
			code, s := w.do(tt.cert, tt.header, "PUT", api+"/namespaces/a/virtualmachines/x/start", "")
			require.Equal(t, 401, code, s.Message)
			require.Empty(t, w.reviews)
		})
	}
}

func TestARequestIsReviewedAsItIsDone(t *testing.T) {
	w := newWorld(t, vm(vmi.RunHalted), running())
	cert := w.front.issue(t, "aggregator")
	for path, want := range map[string]string{
		"virtualmachineinstances/x/vnc/screenshot":         "vnc/screenshot",
		"virtualmachineinstances/x/portforward/22/tcp":     "portforward",
		"virtualmachineinstances/x/console/../../../pods/": "",
	} {
		code, _ := w.do(cert, http.Header{"X-Remote-User": {"bob"}, "X-Remote-Group": {"g"}}, "GET", api+"/namespaces/a/"+path, "")
		if want == "" {
			require.Equal(t, 404, code)
			continue
		}
		require.Equal(t, 403, code)
		require.Equal(t, want, (<-w.reviews).ResourceAttributes.Subresource)
	}
	code, _ := w.do(cert, alice(), "GET", api+"/namespaces/a/virtualmachineinstances/x/addvolume", "")
	require.Equal(t, 404, code)
	r := <-w.reviews
	require.Equal(t, []string{"users", "system:authenticated"}, r.Groups)
	require.Equal(t, map[string]authorizationv1.ExtraValue{"a/b": {"c"}}, r.Extra)
}

func TestAVMIsStartedAndStopped(t *testing.T) {
	w := newWorld(t, vm(vmi.RunHalted))
	cert := w.front.issue(t, "aggregator")
	at := api + "/namespaces/a/virtualmachines/x/"
	get := func() *vmi.VirtualMachine {
		v, err := w.vmis.VirtualMachines("a").Get(t.Context(), "x", metav1.GetOptions{})
		require.NoError(t, err)
		return v
	}
	code, s := w.do(cert, alice(), "PUT", at+"start", `{"dryRun":["All"]}`)
	require.Equal(t, 202, code, s.Message)
	require.Equal(t, vmi.RunHalted, get().Spec.Strategy())
	code, s = w.do(cert, alice(), "PUT", at+"start", "")
	require.Equal(t, 202, code, s.Message)
	require.Equal(t, vmi.RunAlways, get().Spec.Strategy())
	code, s = w.do(cert, alice(), "PUT", at+"stop", "")
	require.Equal(t, 202, code, s.Message)
	require.Equal(t, vmi.RunHalted, get().Spec.Strategy())
	_, s = w.do(cert, alice(), "PUT", at+"stop", "")
	require.Equal(t, `Operation cannot be fulfilled on virtualmachine.kubevirt.io "x": VM is not running`, s.Message)
	code, s = w.do(cert, alice(), "PUT", at+"start", "paused: true")
	require.Equal(t, 202, code, s.Message)
	require.Equal(t, map[string]string{"paused": "true"}, get().Status.StateChangeRequests[0].Data)
	_, s = w.do(cert, alice(), "PUT", api+"/namespaces/a/virtualmachines/y/start", "")
	require.Equal(t, `virtualmachine.kubevirt.io "y" not found`, s.Message)
}

func TestAVMIIsRestartedAndPaused(t *testing.T) {
	w := newWorld(t, vm(vmi.RunAlways), running())
	cert := w.front.issue(t, "aggregator")
	code, s := w.do(cert, alice(), "PUT", api+"/namespaces/a/virtualmachines/x/restart", `{"gracePeriodSeconds":0}`)
	require.Equal(t, 202, code, s.Message)
	v, err := w.vmis.VirtualMachines("a").Get(t.Context(), "x", metav1.GetOptions{})
	require.NoError(t, err)
	i, err := w.vmis.VirtualMachineInstances("a").Get(t.Context(), "x", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, []vmi.StateChangeRequest{{Action: vmi.StopRequest, UID: &i.UID}, {Action: vmi.StartRequest}}, v.Status.StateChangeRequests)
	require.Equal(t, int64(1), *i.Spec.TerminationGracePeriodSeconds)
	code, s = w.do(cert, alice(), "PUT", api+"/namespaces/a/virtualmachineinstances/x/pause", "")
	require.Equal(t, 200, code, s.Message)
	require.Equal(t, "pause", <-w.nodes.calls)
}

// Clients take 400 for a VMI that does not run yet, and ask again for minutes.
func TestOnlyAConsoleThatMayComeIsAnsweredWithBadRequest(t *testing.T) {
	scheduled, silent := running(), running()
	scheduled.Name, scheduled.Status.Phase = "scheduled", vmi.PhaseScheduled
	silent.Name, silent.Spec.Domain.Devices.AutoattachSerialConsole = "silent", new(false)
	w := newWorld(t, scheduled, silent)
	cert := w.front.issue(t, "aggregator")
	code, s := w.do(cert, alice(), "GET", api+"/namespaces/a/virtualmachineinstances/scheduled/console", "")
	require.Equal(t, 400, code)
	require.Equal(t, "VMI is not running", s.Message)
	code, s = w.do(cert, alice(), "GET", api+"/namespaces/a/virtualmachineinstances/silent/console", "")
	require.Equal(t, 409, code)
	require.Equal(t, "No serial consoles are present.", s.Message)
}
