package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

const host = "127.0.0.1:1234"

func testServer(t *testing.T, objects ...vmi.Object) *server {
	t.Helper()
	c, err := client.New(fake.New(objects...).Config())
	require.NoError(t, err)
	return newServer(c, "default", os.DirFS("page"), host)
}

func TestAttackAPageOfAnotherOriginReachesNothing(t *testing.T) {
	s := testServer(t)
	for name, tt := range map[string]struct {
		host, token string
		header      http.Header
		want        int
	}{
		"the page itself":               {host, s.token, nil, 200},
		"its own request":               {host, s.token, http.Header{"Origin": {"http://" + host}}, 200},
		"another token":                 {host, "other", nil, 403},
		"no token":                      {host, "", nil, 403},
		"a part of the token":           {host, s.token[:5], nil, 403},
		"another name (DNS rebinding)":  {"example.com:1234", s.token, nil, 403},
		"another port":                  {"127.0.0.1:80", s.token, nil, 403},
		"no name":                       {"", s.token, nil, 403},
		"another origin":                {host, s.token, http.Header{"Origin": {"http://example.com"}}, 403},
		"another scheme":                {host, s.token, http.Header{"Origin": {"https://" + host}}, 403},
		"a page without an origin":      {host, s.token, http.Header{"Origin": {"null"}}, 403},
		"two origins":                   {host, s.token, http.Header{"Origin": {"http://" + host, "http://example.com"}}, 403},
		"a websocket without an origin": {host, s.token, http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}, 403},
		"a websocket of another origin": {host, s.token, http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Origin": {"http://example.com"}}, 403},
	} {
		for _, path := range []string{"/", "/api/vms"} {
			r := httptest.NewRequest(http.MethodGet, "http://"+host+"/"+tt.token+path, nil)
			r.Host = tt.host
			for k, v := range tt.header {
				r.Header[k] = v
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			require.Equal(t, tt.want, w.Code, "%s: %s: %s", name, path, w.Body)
			require.NotEmpty(t, w.Header().Get("Content-Security-Policy"))
			require.NotContains(t, w.Body.String(), s.token)
		}
	}
}

func TestOnlyWhatThePageUsesIsServed(t *testing.T) {
	s := testServer(t, vmitest.NewVM(vmi.RunHalted, vmitest.WithName("web")), vmitest.NewVM(vmi.RunAlways, vmitest.WithName("runs")))
	for request, want := range map[string]int{
		"POST api/default/web/start":             200,
		"POST api/default/runs/stop":             200,
		"POST api/default/web/pause":             404,
		"POST api/default/none/start":            404,
		"POST api/default/web/delete":            404,
		"POST api/kube-system/web/start":         403,
		"GET api/default/web/start":              404,
		"GET api/default/none/console":           404,
		"GET api/kube-system/web/console":        403,
		"PUT api/default/web/start":              405,
		"DELETE api/default/web":                 405,
		"GET apis/kubevirt.io/v1/namespaces":     404,
		"GET ../main.go":                         404,
		"GET vendor/..%2f..%2fmain.go":           404,
		"POST api/default%2fweb/..%2fweb/start2": 404,
	} {
		method, path, _ := strings.Cut(request, " ")
		r := httptest.NewRequest(method, "http://"+host+"/"+s.token+"/"+path, nil)
		r.Host = host
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code == http.StatusTemporaryRedirect || w.Code == http.StatusMovedPermanently || w.Code == http.StatusPermanentRedirect {
			w.Code = http.StatusNotFound // the path was not clean, and the clean one has no token
		}
		require.Equal(t, want, w.Code, "%s: %s", request, w.Body)
	}
}

func TestTheListHasVMsAndVMIs(t *testing.T) {
	alone := vmitest.New(vmitest.WithName("alone"), vmitest.WithPhase(vmi.PhaseScheduling))
	paused := vmitest.New(vmitest.WithName("paused"), vmitest.WithPhase(vmi.PhaseRunning))
	paused.Status.NodeName = "n1"
	paused.Status.SetCondition(vmi.Condition{Type: vmi.ConditionPaused, Status: corev1.ConditionTrue}, metav1.Now())
	vm := vmitest.NewVM(vmi.RunAlways, vmitest.WithName("paused"))
	off := vmitest.NewVM(vmi.RunHalted, vmitest.WithName("off"))
	off.Status.PrintableStatus = vmi.StatusStopped
	crashes := vmitest.NewVM(vmi.RunAlways, vmitest.WithName("crashes"))
	crashes.Status.PrintableStatus = vmi.StatusCrashLoopBackOff
	ended := vmitest.New(vmitest.WithName("ended"), vmitest.WithPhase(vmi.PhaseSucceeded))
	byHand := vmitest.NewVM(vmi.RunManual, vmitest.WithName("ended"))
	s := testServer(t, alone, paused, vm, off, crashes, ended, byHand)
	got, err := list(t.Context(), s.client, "default")
	require.NoError(t, err)
	require.Equal(t, []row{
		{Namespace: "default", Name: "alone", State: "Scheduling"},
		{Namespace: "default", Name: "crashes", State: "CrashLoopBackOff", Stoppable: true},
		{Namespace: "default", Name: "ended", State: "Succeeded", Startable: true},
		{Namespace: "default", Name: "off", State: "Stopped", Startable: true},
		{Namespace: "default", Name: "paused", State: "Paused", Node: "n1", Running: true, Paused: true, Stoppable: true},
	}, got)
}
