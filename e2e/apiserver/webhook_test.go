package apiserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/e2e/cluster"
	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/internal/scheduler/authority"
	"github.com/podvisor/podvisor/scheduler/admission"
	"github.com/podvisor/podvisor/vmi"
)

// webhooks are the webhooks of the manifests, for the VMIs of one namespace
// and served by the test.
type webhooks struct {
	space
	config authority.Config
	// handler answers; a test may put another in its place.
	handler atomic.Pointer[http.Handler]
	// foreign says that the test issues the certificate.
	foreign bool
	// served is what is served with.
	served *admission.Serving
	// reviews counts the requests.
	reviews atomic.Int64
	// fresh makes each review use a new connection.
	fresh bool
	// limits says that the API server waits for an answer for as long as the manifests say.
	// Else it waits as long as it may: it ignores a webhook that is late, and so would a test on
	// a busy host.
	limits bool
}

// newWebhooks registers the webhooks and makes all that they need. No server
// answers them before serve is called.
func newWebhooks(t *testing.T, change func(*webhooks)) *webhooks {
	t.Helper()
	w := &webhooks{space: newSpace(t)}
	meta, err := metadata.NewForConfig(world.config)
	require.NoError(t, err)
	w.config = authority.Config{Kube: world.kube, Metadata: meta, Namespace: w.name, Service: "webhooks", Secret: "authority", Serving: "certificates", Webhooks: w.name + ".example.com"}
	w.answer(admission.Webhooks{})
	if change != nil {
		change(w)
	}
	for _, name := range []string{w.config.Secret, w.config.Serving} {
		_, err := world.kube.CoreV1().Secrets(w.name).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	w.register()
	return w
}

func (w *webhooks) answer(h http.Handler) { w.handler.Store(&h) }

func (w *webhooks) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.reviews.Add(1)
	(*w.handler.Load()).ServeHTTP(out, r)
}

// register creates the configurations of the manifests under other names, for
// this namespace only.
func (w *webhooks) register() {
	w.t.Helper()
	data, err := os.ReadFile("../../manifests/webhooks.yaml")
	require.NoError(w.t, err)
	only := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.name}}
	kube := world.kube.AdmissionregistrationV1()
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	for doc := range strings.SplitSeq(string(data), "\n---\n") {
		switch {
		case strings.Contains(doc, "kind: MutatingWebhookConfiguration"):
			require.NoError(w.t, yaml.UnmarshalStrict([]byte(doc), &mutating))
		case strings.Contains(doc, "kind: ValidatingWebhookConfiguration"):
			require.NoError(w.t, yaml.UnmarshalStrict([]byte(doc), &validating))
		}
	}
	mutating.Name, validating.Name = w.config.Webhooks, w.config.Webhooks
	const longest = 30 // seconds; the API server permits no more
	for i := range mutating.Webhooks {
		if !w.limits {
			mutating.Webhooks[i].TimeoutSeconds = new(int32(longest))
		}
		mutating.Webhooks[i].NamespaceSelector = only
		mutating.Webhooks[i].ClientConfig.Service.Namespace, mutating.Webhooks[i].ClientConfig.Service.Name = w.name, w.config.Service
	}
	for i := range validating.Webhooks {
		if !w.limits {
			validating.Webhooks[i].TimeoutSeconds = new(int32(longest))
		}
		validating.Webhooks[i].NamespaceSelector = only
		validating.Webhooks[i].ClientConfig.Service.Namespace, validating.Webhooks[i].ClientConfig.Service.Name = w.name, w.config.Service
	}
	_, err = kube.MutatingWebhookConfigurations().Create(w.t.Context(), &mutating, metav1.CreateOptions{})
	require.NoError(w.t, err)
	_, err = kube.ValidatingWebhookConfigurations().Create(w.t.Context(), &validating, metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.t.Cleanup(func() {
		_ = kube.MutatingWebhookConfigurations().Delete(context.Background(), mutating.Name, metav1.DeleteOptions{})
		_ = kube.ValidatingWebhookConfigurations().Delete(context.Background(), validating.Name, metav1.DeleteOptions{})
	})
}

// serve answers until the test ends or stop is called, and returns when the
// webhooks are in force.
func (w *webhooks) serve() (stop func()) {
	w.t.Helper()
	l := listenInCluster(w.t, clusterName)
	w.route(l.Addr().(*net.TCPAddr).Port)
	if !w.foreign {
		w.keepAuthority()
	}
	serving := w.serving()
	w.served = serving
	eventually(w.t, serving.Ready)
	mux := http.NewServeMux()
	owned, err := newOwned(w.t.Context(), asController())
	require.NoError(w.t, err)
	all := map[string]http.Handler{admission.DefaultsPath: w, admission.ValidationPath: w, admission.EvictionPath: w, admission.UninstallPath: w,
		admission.OwnedPath: owned, admission.MigrationPath: w}
	for at, h := range serving.AtSecretPaths(all) {
		mux.Handle(at, h)
	}
	s := &http.Server{Handler: mux, ErrorLog: log.New(io.Discard, "", 0)}
	s.SetKeepAlivesEnabled(!w.fresh)
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve(tls.NewListener(l, &tls.Config{GetCertificate: serving.Certificate})) })
	stop = func() { _ = s.Close(); wg.Wait() }
	w.t.Cleanup(stop)
	eventually(w.t, w.inForce)
	return stop
}

// keepAuthority does what virt-certificates does until the test ends.
func (w *webhooks) keepAuthority() {
	w.t.Helper()
	a, err := authority.New(w.config)
	require.NoError(w.t, err)
	background(w.t, a.Run)
}

// serving follows the certificate, as virt-controller does, until the test ends.
func (w *webhooks) serving() *admission.Serving {
	w.t.Helper()
	s, err := admission.NewServing(admission.ServingConfig{Kube: w.config.Kube, Namespace: w.config.Namespace, Secret: w.config.Serving, Webhooks: w.config.Webhooks})
	require.NoError(w.t, err)
	background(w.t, s.Run)
	return s
}

// background calls run until the test ends.
func background(t *testing.T, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
}

// inForce returns an error while VMIs are not completed or not validated.
func (w *webhooks) inForce() error {
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	v, err := w.vmis.Create(w.t.Context(), guest("probe"), dryRun)
	if err != nil {
		return err
	}
	if v.Spec.Domain.CPU == nil {
		return fmt.Errorf("the VMI was not completed")
	}
	if _, err := w.vmis.Create(w.t.Context(), impossible("probe"), dryRun); err == nil {
		return fmt.Errorf("the VMI was not validated")
	}
	return nil
}

// impossible is a VMI that the schema accepts and the validation refuses.
func impossible(name string) *vmi.VirtualMachineInstance {
	bad := guest(name)
	bad.Spec.Domain.Memory = nil
	bad.Spec.Domain.Devices.Disks = append(bad.Spec.Domain.Devices.Disks, vmi.Disk{Name: "nowhere"})
	return bad
}

// route makes or changes the Service so that it leads to the port.
func (w *webhooks) route(port int) {
	w.t.Helper()
	const name = "https"
	services, slices := world.kube.CoreV1().Services(w.name), world.kube.DiscoveryV1().EndpointSlices(w.name)
	_ = services.Delete(w.t.Context(), w.config.Service, metav1.DeleteOptions{})
	_ = slices.Delete(w.t.Context(), w.config.Service, metav1.DeleteOptions{})
	_, err := services.Create(w.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: w.config.Service},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: name, Port: 443}}},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	_, err = slices.Create(w.t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: w.config.Service, Labels: map[string]string{discoveryv1.LabelServiceName: w.config.Service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{plan.ControlPlane.Addr().String()}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new(name), Port: new(int32(port))}},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// listenInCluster listens where the API server of the cluster is, which has a network namespace
// of its own.
func listenInCluster(t *testing.T, name string) net.Listener {
	t.Helper()
	l, err := listenAt(name)
	require.NoError(t, err)
	return l
}

func listenAt(name string) (net.Listener, error) {
	c, err := cluster.Open(cluster.Config{Name: name})
	if err != nil {
		return nil, err
	}
	pid, err := c.Node("cp").PID()
	if err != nil {
		return nil, err
	}
	type result struct {
		l   net.Listener
		err error
	}
	done := make(chan result)
	go func() {
		// The thread stays in the namespace, and ends with this function.
		runtime.LockOSThread()
		l, err := listenIn(fmt.Sprintf("/proc/%d/ns/net", pid))
		done <- result{l, err}
	}()
	r := <-done
	return r.l, r.err
}

func listenIn(namespace string) (net.Listener, error) {
	f, err := os.Open(namespace)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	return net.Listen("tcp", net.JoinHostPort(plan.ControlPlane.Addr().String(), "0"))
}
