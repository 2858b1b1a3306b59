package subresource_test

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	kubetesting "k8s.io/client-go/testing"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// get reads what needs no identity.
func (w *world) get(path string) (int, map[string]any) {
	tr := &http.Transport{TLSClientConfig: config(nil)}
	defer tr.CloseIdleConnections()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.url+path, http.NoBody)
	require.NoError(w.t, err)
	a, err := tr.RoundTrip(r)
	require.NoError(w.t, err)
	defer func() { _ = a.Body.Close() }()
	b, err := io.ReadAll(a.Body)
	require.NoError(w.t, err)
	var out map[string]any
	require.NoError(w.t, json.Unmarshal(b, &out), "%s", b)
	return a.StatusCode, out
}

func TestHealthzSaysWhetherTheAPIServerAnswers(t *testing.T) {
	w := newWorld(t)
	code, h := w.get(api + "/healthz")
	require.Equal(t, 200, code)
	server := h["apiserver"].(map[string]any)
	require.Equal(t, "ok", server["connectivity"])
	require.NotEmpty(t, server["version"].(map[string]any)["gitVersion"])
	require.Equal(t, "42", h["config-resource-version"])

	w = newWorld(t)
	asked := 0
	w.kube.PrependReactor("get", "version", func(kubetesting.Action) (bool, runtime.Object, error) {
		asked++
		return true, nil, errors.New("connection refused")
	})
	began := time.Now()
	for range 3 {
		code, h = w.get("/apis/subresources.kubevirt.io/v1alpha3/healthz")
		require.Equal(t, 500, code)
		require.Equal(t, map[string]any{"connectivity": "failed", "error": "connection refused"}, h["apiserver"])
	}
	// An answer counts for ten seconds.
	require.LessOrEqual(t, asked, 1+int(time.Since(began)/(10*time.Second)), "requests without identity do not load the API server")
}

func TestWhatIsNotServedIsNamedAndNotListed(t *testing.T) {
	w := newWorld(t, vm(vmi.RunAlways), running())
	cert := w.front.issue(t, "aggregator")
	_, list := w.get(api)
	require.NotEmpty(t, list["resources"])
	for _, path := range []string{"virtualmachineinstances/usbredir", "virtualmachineinstances/vsock", "virtualmachines/memorydump"} {
		require.NotContains(t, list["resources"], map[string]any{"name": path, "singularName": "", "namespaced": true, "kind": "", "verbs": nil})
	}
	for path, name := range map[string]string{
		"virtualmachineinstances/x/usbredir":     "virtualmachineinstances/usbredir",
		"virtualmachineinstances/x/vsock?port=1": "virtualmachineinstances/vsock",
		"virtualmachines/x/memorydump":           "virtualmachines/memorydump",
	} {
		code, s := w.do(cert, alice(), "GET", api+"/namespaces/a/"+path, "")
		require.Equal(t, 404, code)
		require.Equal(t, metav1.StatusReasonNotFound, s.Reason)
		require.Contains(t, s.Message, name+" is not served")
	}
}

// Whatever a tenant has the pod and the VMI say of their addresses, a port is one of the
// guest, which its launcher connects to: nothing is dialed and no pod is read.
func TestAttackAVMIIsNoWayToItsNode(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	v := running()
	v.UID = "u1"
	v.Status.Interfaces = []vmi.InterfaceStatus{{Name: "default", IP: "127.0.0.1", IPs: []string{"127.0.0.1"}}}
	w := newWorld(t, v)
	v, err = w.vmis.VirtualMachineInstances("a").Get(t.Context(), "x", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = w.kube.CoreV1().Pods("a").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "launcher", Labels: map[string]string{vmi.CreatedByLabel: string(v.UID)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(v, vmi.VirtualMachineInstances.GroupVersionKind)}},
		Spec:   corev1.PodSpec{NodeName: "n"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "127.0.0.1", HostIP: "192.0.2.1"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	c, _, err := w.aggregator().DialContext(t.Context(), w.aggregator().url+"/namespaces/a/virtualmachineinstances/x/portforward/"+port+"/tcp", alice()) //nolint:bodyclose // a websocket has none
	require.NoError(t, err)
	defer c.Close()
	echoes(t, c)
	require.Equal(t, protocol.Stream("port-tcp-"+port), <-w.nodes.streams, "the stream is the launcher's")
	for _, a := range w.kube.Actions() {
		require.False(t, a.GetResource().Resource == "pods" && a.GetVerb() != "create", "what a pod says of its address is not read")
	}
}

func TestAPortOfDatagramsKeepsEachDatagram(t *testing.T) {
	v := running()
	v.Status.Interfaces = []vmi.InterfaceStatus{{Name: "default"}}
	w := newWorld(t, v)
	c, _, err := w.aggregator().DialContext(t.Context(), w.aggregator().url+"/namespaces/a/virtualmachineinstances/x/portforward/53/udp", alice()) //nolint:bodyclose // a websocket has none
	require.NoError(t, err)
	defer c.Close()
	for _, text := range []string{"one", "two", strings.Repeat("x", 2000)} {
		require.NoError(t, c.WriteMessage(websocket.BinaryMessage, []byte(text)))
	}
	for _, text := range []string{"one", "two", strings.Repeat("x", 2000)} {
		_, b, err := c.ReadMessage()
		require.NoError(t, err)
		require.Equal(t, text, string(b))
	}
	require.Equal(t, protocol.Stream("port-udp-53"), <-w.nodes.streams)
}

func TestAPortThatCannotBeOpenedIsAnswered(t *testing.T) {
	for name, tt := range map[string]struct {
		interfaces int
		refused    vmi.Finding
		code       int
		words      string
	}{
		"nothing listens":     {1, vmi.Finding{Reason: vmi.RefusedUnavailable, Message: "dial tcp 10.0.2.2:22: connect: connection refused"}, 503, "dialing VM: dial tcp 10.0.2.2:22: connect: connection refused"},
		"an older launcher":   {1, vmi.Finding{Reason: vmi.RefusedUnknown, Message: "this launcher has no stream"}, 409, "restart the VMI"},
		"no way to the guest": {1, vmi.Finding{Reason: vmi.RefusedMalformed, Message: "no network interfaces are present"}, 400, "no network interfaces are present"},
		"no interface":        {0, vmi.Finding{}, 400, "no network interfaces are present"},
	} {
		t.Run(name, func(t *testing.T) {
			v := running()
			v.Status.Interfaces = make([]vmi.InterfaceStatus, tt.interfaces)
			w := newWorld(t, v)
			if tt.refused.Reason != "" {
				w.nodes.refuses <- &vmi.Refusal{Finding: tt.refused}
			}
			_, answer, err := w.aggregator().DialContext(t.Context(), w.aggregator().url+"/namespaces/a/virtualmachineinstances/x/portforward/22/tcp", alice()) //nolint:bodyclose // gorilla has read it
			require.Error(t, err)
			var s metav1.Status
			require.NoError(t, json.NewDecoder(answer.Body).Decode(&s))
			require.Equal(t, tt.code, answer.StatusCode)
			require.Contains(t, s.Message, tt.words)
		})
	}
}

func TestAVMIWithALivenessProbeIsPausedOnlyIfTheProbeAsksTheAgent(t *testing.T) {
	for name, tt := range map[string]struct {
		probe vmi.ProbeHandler
		code  int
	}{
		"of a port":    {vmi.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(22)}}, 403},
		"of a command": {vmi.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}, 403},
		"of the agent": {vmi.ProbeHandler{GuestAgentPing: &vmi.GuestAgentPing{}}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			v := running()
			v.Spec.LivenessProbe = &vmi.Probe{ProbeHandler: tt.probe}
			w := newWorld(t, v)
			code, s := w.do(w.front.issue(t, "aggregator"), alice(), "PUT", api+"/namespaces/a/virtualmachineinstances/x/pause", "")
			require.Equal(t, tt.code, code, s.Message)
			if tt.code == 200 {
				require.Equal(t, "pause", <-w.nodes.calls)
				return
			}
			require.Contains(t, s.Message, "Pausing VMIs with a non-GuestAgentPing LivenessProbe is not supported")
			require.Empty(t, w.nodes.calls)
		})
	}
}

func TestASoftRebootNeedsTheAgentOrACPI(t *testing.T) {
	const words = `Operation cannot be fulfilled on virtualmachineinstance.kubevirt.io "x": VMI neither have the agent connected nor the ACPI feature enabled`
	v := running()
	v.Spec.Domain.Features = &vmi.Features{ACPI: vmi.FeatureState{Enabled: new(false)}}
	w := newWorld(t, v)
	code, s := w.do(w.front.issue(t, "aggregator"), alice(), "PUT", api+"/namespaces/a/virtualmachineinstances/x/softreboot", "")
	require.Equal(t, 409, code)
	require.Equal(t, words, s.Message)

	w = newWorld(t, running()) // whose launcher knows better
	w.nodes.refuses <- &vmi.Refusal{Finding: vmi.Finding{Reason: vmi.RefusedNoAgent, Message: "there is no agent"}}
	code, s = w.do(w.front.issue(t, "aggregator"), alice(), "PUT", api+"/namespaces/a/virtualmachineinstances/x/softreboot", "")
	require.Equal(t, 409, code)
	require.Equal(t, words, s.Message)
}
