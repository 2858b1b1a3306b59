package apiserver

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/internal/certificate"
	"github.com/podvisor/podvisor/internal/contract"
	"github.com/podvisor/podvisor/scheduler/subresource"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// All kinds are served here with all their typed fields, and without the policies of
// Podvisor, which the fake does not have.
func TestTheRealAPIServerKeepsTheContractOfTheFake(t *testing.T) {
	t.Parallel()
	b := newFresh(t, "contract")
	dir := t.TempDir()
	gen := exec.CommandContext(t.Context(), "go", "run", "./internal/apigen", "-whole", dir)
	gen.Dir = "../.."
	out, err := gen.CombinedOutput()
	require.NoError(t, err, string(out))
	said, err := b.kubectl("apply", "--server-side", "-f", dir)
	require.NoError(t, err, said)
	awaitEstablished(t, func() (string, error) { return b.kubectl("get", "-o", "json", "-f", dir) })

	cfg, err := clientcmd.BuildConfigFromFlags("", b.cluster.Kubeconfig)
	require.NoError(t, err)
	cfg.QPS, cfg.Burst = 500, 1000
	c, err := client.New(cfg)
	require.NoError(t, err)
	contract.Run(t, c, "default")
	b.answerVerbs(cfg, c)
	contract.RunVerbs(t, c, "default")
}

// answerVerbs answers the verbs as virt-controller does, with the rights of the client, and
// returns when the API server sends them here.
func (b fresh) answerVerbs(cfg *rest.Config, c *client.Client) {
	t, ctx := b.t, b.t.Context()
	t.Helper()
	s, err := subresource.New(subresource.Config{Client: c, Kube: b.kube})
	require.NoError(t, err)
	background(t, s.Run)
	bundle, _, err := certificate.Policy{Name: "verbs", Hosts: []string{"verbs.default.svc"}}.Renew(certificate.Bundle{}, time.Now())
	require.NoError(t, err)
	pair, err := bundle.KeyPair()
	require.NoError(t, err)
	l := listenInCluster(t, b.cluster.Name)
	h := &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0)}
	go func() {
		_ = h.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{*pair}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS13}))
	}()
	t.Cleanup(func() { _ = h.Close() })
	ports := []corev1.ServicePort{{Name: "https", Port: 443}}
	_, err = b.kube.CoreV1().Services("default").Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "verbs"}, Spec: corev1.ServiceSpec{Ports: ports}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = b.kube.DiscoveryV1().EndpointSlices("default").Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "verbs", Labels: map[string]string{discoveryv1.LabelServiceName: "verbs"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{plan.ControlPlane.Addr().String()}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(l.Addr().(*net.TCPAddr).Port))}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	services, err := dynamic.NewForConfig(cfg)
	require.NoError(t, err)
	_, err = services.Resource(certificate.APIServiceResource).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": certificate.APIServices()[0]},
		"spec": map[string]any{"group": vmi.SubresourceGroup, "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(15),
			"caBundle": base64.StdEncoding.EncodeToString(bundle.Authorities), "service": map[string]any{"namespace": "default", "name": "verbs", "port": int64(443)}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, func() error {
		err := c.VirtualMachines("default").Start(ctx, "a", vmi.StartOptions{})
		if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "virtualmachine.kubevirt.io") {
			return fmt.Errorf("the verbs are not answered yet: %w", err)
		}
		return nil
	})
}
