package apiserver

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/handler/stream"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// echoing are guests whose streams echo.
type echoing struct{}

func (echoing) Stream(context.Context, protocol.Target, protocol.Stream) (net.Conn, error) {
	near, far := net.Pipe()
	go func() { _, _ = io.Copy(far, far); _ = far.Close() }()
	return near, nil
}

func (echoing) Call(context.Context, protocol.Target, protocol.Call, json.RawMessage) (json.RawMessage, error) {
	return nil, nil
}

// componentPod makes a pod of a component on the node, with the address, and returns it
// with a client that has its token.
func componentPod(t *testing.T, account, node, address string) (*corev1.Pod, kubernetes.Interface) {
	t.Helper()
	p, err := world.kube.CoreV1().Pods(home).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: account + "-stream-", Labels: map[string]string{vmi.AppLabel: account}},
		Spec:       corev1.PodSpec{NodeName: node, ServiceAccountName: account, Containers: []corev1.Container{{Name: "c", Image: "example/c"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = world.kube.CoreV1().Pods(home).Delete(context.Background(), p.Name, atOnce) })
	p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, address, []corev1.PodIP{{IP: address}}
	_, err = world.kube.CoreV1().Pods(home).UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
	require.NoError(t, err)
	r, err := world.kube.CoreV1().ServiceAccounts(home).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.Name, UID: p.UID},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	cfg := rest.AnonymousClientConfig(world.config)
	cfg.BearerToken = r.Status.Token
	kube, err := kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	return p, kube
}

func TestAStreamIsOpenedWithATokenForOneNode(t *testing.T) {
	t.Parallel()
	node := newSpace(t).name
	_, err := world.kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = world.kube.CoreV1().Nodes().Delete(context.Background(), node, metav1.DeleteOptions{}) })
	own, controller := componentPod(t, "virt-controller", node, "10.0.0.9")
	_, handler := componentPod(t, "virt-handler", node, "127.0.0.1")

	cert, err := stream.NewCertificate(time.Now())
	require.NoError(t, err)
	_, err = handler.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+stream.CertificateAnnotation+`":"`+cert.Hash+`"}}}`), metav1.PatchOptions{})
	require.NoError(t, err, "the handler publishes its certificate")
	serve := func(name string) int {
		reviews := stream.NewReviews(stream.ReviewsConfig{Client: handler.AuthenticationV1().TokenReviews(), Node: name, User: "system:serviceaccount:" + home + ":virt-controller"})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			done <- stream.NewServer(stream.ServerConfig{Guests: echoing{}, Admit: reviews.Admit, Certificate: cert}).Serve(ctx, l)
		}()
		t.Cleanup(func() {
			cancel()
			require.NoError(t, <-done)
		})
		return l.Addr().(*net.TCPAddr).Port
	}
	tokens := &stream.Tokens{Accounts: controller.CoreV1().ServiceAccounts(home), Account: "virt-controller", PodName: own.Name, PodUID: own.UID}
	open := func(port int) (net.Conn, error) {
		v := &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "vm", UID: "u"}}
		v.Status.NodeName = node
		return stream.NewDialer(stream.DialerConfig{Nodes: controller.CoreV1().Nodes(), Handlers: controller.CoreV1().Pods(home), Token: tokens.Token, Port: port}).Stream(t.Context(), v, "console")
	}
	conn, err := open(serve(node))
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "hello")
	require.NoError(t, err)
	b := make([]byte, 5)
	_, err = io.ReadFull(conn, b)
	require.NoError(t, err)
	require.Equal(t, "hello", string(b))

	_, err = open(serve("another-node"))
	var refused *vmi.Refusal
	require.ErrorAs(t, err, &refused, "a token for one node opens nothing on another")
}

func TestAttackTheControllerRequestsNoTokensButForHandlers(t *testing.T) {
	t.Parallel()
	node := newSpace(t).name
	own, controller := componentPod(t, "virt-controller", node, "10.0.0.9")
	other, _ := componentPod(t, "virt-controller", node, "10.0.0.9")
	bound := func(p *corev1.Pod) *authenticationv1.BoundObjectReference {
		return &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.Name, UID: p.UID}
	}
	for what, tt := range map[string]struct {
		account string
		spec    authenticationv1.TokenRequestSpec
	}{
		"of another account":          {"virt-certificates", authenticationv1.TokenRequestSpec{Audiences: []string{stream.Audience("n1")}, BoundObjectRef: bound(own)}},
		"for the API server":          {"virt-controller", authenticationv1.TokenRequestSpec{BoundObjectRef: bound(own)}},
		"for more than one audience":  {"virt-controller", authenticationv1.TokenRequestSpec{Audiences: []string{stream.Audience("n1"), "x"}, BoundObjectRef: bound(own)}},
		"for the handler of no node":  {"virt-controller", authenticationv1.TokenRequestSpec{Audiences: []string{stream.Audience("")}, BoundObjectRef: bound(own)}},
		"for what no node is called":  {"virt-controller", authenticationv1.TokenRequestSpec{Audiences: []string{stream.Audience("n1/n2")}, BoundObjectRef: bound(own)}},
		"for a hundred years":         {"virt-controller", authenticationv1.TokenRequestSpec{Audiences: []string{stream.Audience("n1")}, BoundObjectRef: bound(own), ExpirationSeconds: new(int64(100 * 365 * 24 * 3600))}},
		"for a second more":           {"virt-controller", authenticationv1.TokenRequestSpec{Audiences: []string{stream.Audience("n1")}, BoundObjectRef: bound(own), ExpirationSeconds: new(int64(3601))}},
		"bound to no pod":             {"virt-controller", authenticationv1.TokenRequestSpec{Audiences: []string{stream.Audience("n1")}}},
		"bound to another pod of its": {"virt-controller", authenticationv1.TokenRequestSpec{Audiences: []string{stream.Audience("n1")}, BoundObjectRef: bound(other)}},
	} {
		_, err := controller.CoreV1().ServiceAccounts(home).CreateToken(t.Context(), tt.account, &authenticationv1.TokenRequest{Spec: tt.spec}, metav1.CreateOptions{})
		require.True(t, apierrors.IsForbidden(err), "a token %s: %v", what, err)
	}
	for _, seconds := range []*int64{nil, new(int64(600)), new(int64(3600))} {
		_, err := controller.CoreV1().ServiceAccounts(home).CreateToken(t.Context(), "virt-controller", &authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{Audiences: []string{stream.Audience("n1")}, BoundObjectRef: bound(own), ExpirationSeconds: seconds},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
}
