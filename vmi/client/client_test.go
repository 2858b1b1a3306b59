package client_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// serve makes a client of an API server that answers as handle does.
func serve(t testing.TB, handle http.HandlerFunc) *client.Client {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	c, err := client.New(&rest.Config{Host: s.URL})
	require.NoError(t, err)
	return c
}

func TestAClientOfNoConfigurationIsAnErrorThatNamesIt(t *testing.T) {
	_, err := client.New(nil)
	require.ErrorContains(t, err, "cfg is nil")
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func TestAStatusIsWrittenAsItsDifference(t *testing.T) {
	var path, kind, body string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		path, kind, body = r.URL.Path, r.Header.Get("Content-Type"), string(b)
		answer(w, vmitest.New())
	})
	old := vmitest.New()
	old.ResourceVersion = "7"
	old.Status.Phase = vmi.PhaseScheduled
	old.Status.NodeName = "n1"
	changed := old.DeepCopy()
	changed.Status.Phase = vmi.PhaseRunning
	changed.Status.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionTrue}, metav1.Time{})

	_, err := client.WriteStatus(t.Context(), c.VirtualMachineInstances("default"), old, changed)
	require.NoError(t, err)
	require.Equal(t, "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances/testvmi/status", path)
	require.Equal(t, "application/merge-patch+json", kind)
	require.JSONEq(t, `{
		"metadata": {"uid": "11111111-1111-4111-8111-111111111111", "resourceVersion": "7"},
		"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": null, "lastTransitionTime": null}]}
	}`, body)
}

func TestAStatusThatIsThereAlreadyIsNotWritten(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) { t.Error("asked for " + r.URL.Path) })
	old := vmitest.New()
	_, err := client.WriteStatus(t.Context(), c.VirtualMachineInstances("default"), old, old.DeepCopy())
	require.NoError(t, err)
}

func TestErrorsAreThoseOfTheAPI(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		answer(w, apierrors.NewNotFound(vmi.VirtualMachineInstances.Resource().GroupResource(), "testvmi").Status())
	})
	_, err := c.VirtualMachineInstances("default").Get(t.Context(), "testvmi", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

// Of one that begins as the API server writes it, the kind is known without a look at the rest.
func TestTheOrderOfTheKeysOfAnAnswerDoesNotMatter(t *testing.T) {
	t.Parallel()
	const group, kind, parts = `"apiVersion":"kubevirt.io/v1"`, `"kind":"VirtualMachineInstance"`, `"metadata":{"name":"a","uid":"u"},"spec":{"domain":{"cpu":{"cores":2}}}`
	for name, tt := range map[string]struct {
		answer, err string
	}{
		"the API server's":              {`{` + group + `,` + kind + `,` + parts + `}`, ""},
		"another":                       {`{` + kind + `,` + parts + `,` + group + `}`, ""},
		"with space":                    {`{ ` + group + `, ` + kind + `, ` + parts + `}`, ""},
		"the beginning of another kind": {`{` + group + `,"kind":"VirtualMachineInstances",` + parts + `}`, "no kind"},
		"no object":                     {`{` + group + `,` + kind + `,"metadata":1}`, "the object has no name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := client.New(&rest.Config{Host: "http://127.0.0.1", Transport: answering(tt.answer)})
			require.NoError(t, err)
			v, err := c.VirtualMachineInstances("default").Get(t.Context(), "a", metav1.GetOptions{})
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			want := &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u"}}
			want.Spec.Domain.CPU = &vmi.CPU{Cores: 2}
			require.Equal(t, want, v)
		})
	}
}

func TestTheAnswerToAWriteOfAPartIsItsMetadata(t *testing.T) {
	t.Parallel()
	old := vmitest.New()
	old.ResourceVersion, old.Status.NodeName = "7", "n1"
	running := old.DeepCopy()
	running.Status.Phase = vmi.PhaseRunning
	for name, tt := range map[string]struct {
		write              func(*client.Client) (*vmi.VirtualMachineInstance, error)
		method, path, body string
		now                *vmi.VirtualMachineInstance
	}{
		"status": {func(c *client.Client) (*vmi.VirtualMachineInstance, error) {
			return client.WriteStatus(t.Context(), c.VirtualMachineInstances("default"), old, running)
		}, "PATCH", "/testvmi/status", `{"metadata": {"uid": "11111111-1111-4111-8111-111111111111", "resourceVersion": "7"}, "status": {"phase": "Running"}}`, running},
		"status as a whole": {func(c *client.Client) (*vmi.VirtualMachineInstance, error) {
			c.ReplaceStatuses(func() bool { return true })
			return client.ReplaceStatus(t.Context(), c.VirtualMachineInstances("default"), old, running)
		}, "PUT", "/testvmi/status", `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {
			"name": "testvmi", "uid": "11111111-1111-4111-8111-111111111111", "resourceVersion": "7"}, "status": {"phase": "Running", "nodeName": "n1"}}`, running},
		"status without the right to update it": {func(c *client.Client) (*vmi.VirtualMachineInstance, error) {
			c.ReplaceStatuses(func() bool { return true })
			return client.ReplaceStatus(t.Context(), c.VirtualMachineInstances("shop"), old, running)
		}, "PATCH", "/testvmi/status", `{"metadata": {"uid": "11111111-1111-4111-8111-111111111111", "resourceVersion": "7"}, "status": {"phase": "Running"}}`, running},
		"status that may be lost of": {func(c *client.Client) (*vmi.VirtualMachineInstance, error) {
			c.ReplaceStatuses(func() bool { return false })
			return client.ReplaceStatus(t.Context(), c.VirtualMachineInstances("default"), old, running)
		}, "PATCH", "/testvmi/status", `{"metadata": {"uid": "11111111-1111-4111-8111-111111111111", "resourceVersion": "7"}, "status": {"phase": "Running"}}`, running},
		"metadata": {func(c *client.Client) (*vmi.VirtualMachineInstance, error) {
			return client.WriteMetadata(t.Context(), c.VirtualMachineInstances("default"), old, map[string]any{"labels": map[string]any{"a": "b", "c": nil}})
		}, "PATCH", "/testvmi", `{"metadata": {"uid": "11111111-1111-4111-8111-111111111111", "resourceVersion": "7", "labels": {"a": "b", "c": null}}}`, old},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked *http.Request
			var body []byte
			h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r
				body, _ = io.ReadAll(r.Body)
				w.Header().Set("Content-Type", "application/json")
				if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/shop/") {
					w.WriteHeader(http.StatusForbidden)
					answer(w, apierrors.NewForbidden(vmi.VirtualMachineInstances.Resource().GroupResource(), "testvmi", errors.New("no role")).Status())
					return
				}
				_, _ = io.WriteString(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"testvmi","namespace":"default","uid":"u","resourceVersion":"8",
			"labels":{"a":"b"},"managedFields":[{"manager":"x","fieldsV1":{}}]}}`)
			}))
			defer h.Close()
			c, err := client.New(&rest.Config{Host: h.URL})
			require.NoError(t, err)
			now, err := tt.write(c)
			require.NoError(t, err)
			require.Equal(t, tt.method, asked.Method)
			require.True(t, strings.HasSuffix(asked.URL.Path, tt.path), asked.URL.Path)
			require.Equal(t, "Ignore", asked.URL.Query().Get("fieldValidation"), "the server does not search the whole object for unknown fields")
			require.Equal(t, map[string]string{"PATCH": "application/merge-patch+json", "PUT": "application/json"}[tt.method], asked.Header.Get("Content-Type"))
			require.Contains(t, asked.Header.Get("Accept"), "as=PartialObjectMetadata")
			require.JSONEq(t, tt.body, string(body))
			require.Equal(t, "8", now.ResourceVersion)
			require.Equal(t, map[string]string{"a": "b"}, now.Labels)
			require.Empty(t, now.ManagedFields)
			require.Equal(t, tt.now.Status, now.Status)
			require.Equal(t, tt.now.Spec, now.Spec)
			require.Equal(t, "7", old.ResourceVersion, "what was given stays as it is")
		})
	}
}

// The API server takes the first word for the manager of the fields, and writes the whole into
// its audit log.
func TestEveryRequestNamesTheProgram(t *testing.T) {
	program := filepath.Base(os.Args[0]) + "/"
	for name, tt := range map[string]struct{ set, want string }{
		"of client-go": {"", program},
		"own":          {"operator/1", "operator/1"},
	} {
		t.Run(name, func(t *testing.T) {
			var agents []string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				agents = append(agents, r.UserAgent())
				http.Error(w, "not today", http.StatusForbidden)
			}))
			t.Cleanup(s.Close)
			c, err := client.New(&rest.Config{Host: s.URL, UserAgent: tt.set})
			require.NoError(t, err)
			vmis := c.VirtualMachineInstances("default")
			_, err = vmis.Get(t.Context(), "web", metav1.GetOptions{})
			require.Error(t, err)
			require.Error(t, vmis.Pause(t.Context(), "web", vmi.PauseOptions{}))
			_, err = vmis.Console(t.Context(), "web")
			require.Error(t, err)
			require.Len(t, agents, 3)
			for _, agent := range agents {
				require.Truef(t, strings.HasPrefix(agent, tt.want), "%q", agent)
			}
		})
	}
}
