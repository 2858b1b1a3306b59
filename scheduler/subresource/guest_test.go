package subresource_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	kubetesting "k8s.io/client-go/testing"

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
	for range 3 {
		code, h = w.get("/apis/subresources.kubevirt.io/v1alpha3/healthz")
		require.Equal(t, 500, code)
		require.Equal(t, map[string]any{"connectivity": "failed", "error": "connection refused"}, h["apiserver"])
	}
	require.Equal(t, 1, asked, "requests without identity do not load the API server")
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

func TestAttackAVMIIsNoWayToItsNode(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		code   int
		words  string
	}{
		"a pod on the network of the node": {func(p *corev1.Pod) { p.Spec.HostNetwork = true }, 409, "network of node n"},
		"the address of the node":          {func(p *corev1.Pod) { p.Status.PodIP = "192.0.2.1" }, 409, "network of node n"},
		"another address of the node":      {func(p *corev1.Pod) { p.Status.PodIP = "2001:db8:0::1" }, 409, "network of node n"},
		"the same in IPv6":                 {func(p *corev1.Pod) { p.Status.PodIP = "::ffff:192.0.2.1" }, 409, "network of node n"},
		"this host":                        {func(p *corev1.Pod) { p.Status.PodIP = "127.0.0.1" }, 409, "network of node n"},
		"a service of the cloud":           {func(p *corev1.Pod) { p.Status.PodIP = "169.254.169.254" }, 409, "network of node n"},
		"no address":                       {func(p *corev1.Pod) { p.Status.PodIP = "node.example" }, 409, "network of node n"},
		"a pod of another node":            {func(p *corev1.Pod) { p.Spec.NodeName = "m" }, 400, "no network interfaces are present"},
		"a pod of another owner":           {func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }, 400, "no network interfaces are present"},
		"the pod of the VMI":               {func(*corev1.Pod) {}, 400, "is a websocket"}, // which this request does not ask for
	} {
		t.Run(name, func(t *testing.T) {
			v := running()
			v.UID = "u1"
			w := newWorld(t, v)
			v, err := w.vmis.VirtualMachineInstances("a").Get(t.Context(), "x", metav1.GetOptions{})
			require.NoError(t, err)
			p := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "launcher", Labels: map[string]string{vmi.CreatedByLabel: string(v.UID)},
					OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(v, vmi.VirtualMachineInstances.GroupVersionKind)}},
				Spec: corev1.PodSpec{NodeName: "n"},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", HostIP: "192.0.2.1",
					HostIPs: []corev1.HostIP{{IP: "192.0.2.1"}, {IP: "2001:db8::1"}}},
			}
			tt.change(p)
			_, err = w.kube.CoreV1().Pods("a").Create(t.Context(), p, metav1.CreateOptions{})
			require.NoError(t, err)
			code, s := w.do(w.front.issue(t, "aggregator"), alice(), "GET", api+"/namespaces/a/virtualmachineinstances/x/portforward/22/tcp", "")
			require.Equal(t, tt.code, code, s.Message)
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
