package client_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"image/png"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// guest is a VMI that runs, with an agent and an interface.
func guest() *vmi.VirtualMachineInstance {
	v := vmitest.New(vmitest.WithName("web"), vmitest.WithPhase(vmi.PhaseRunning))
	v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionAgentConnected, Status: corev1.ConditionTrue}, metav1.Now())
	v.Status.Interfaces = []vmi.InterfaceStatus{{Name: "default"}}
	v.Status.GuestOSInfo.Name = "Debian"
	return v
}

// authorized serves the fake over TLS, with HTTP/2, to who has the token.
func authorized(t *testing.T, s *fake.Server) *rest.Config {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		s.ServeHTTP(w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &rest.Config{Host: server.URL, BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{CAData: ca}, Timeout: time.Minute}
}

func TestStreamsReachTheGuest(t *testing.T) {
	for name, config := range map[string]func(*testing.T, *fake.Server) *rest.Config{
		"in memory":                  func(_ *testing.T, s *fake.Server) *rest.Config { return s.Config() },
		"over TLS, with a token":     authorized,
		"with a limit on the client": func(t *testing.T, s *fake.Server) *rest.Config { c := authorized(t, s); c.QPS = 1000; return c },
	} {
		t.Run(name, func(t *testing.T) {
			s := fake.New(guest())
			c, err := client.New(config(t, s))
			require.NoError(t, err)
			vmis := c.VirtualMachineInstances("default")
			ctx, cancel := context.WithCancel(t.Context())
			console, err := vmis.Console(ctx, "web")
			require.NoError(t, err)
			screen, err := vmis.VNC(ctx, "web", client.VNCOptions{Preserve: true})
			require.NoError(t, err)
			tcp, err := vmis.PortForward("web")(ctx, "tcp", "web:80")
			require.NoError(t, err)
			udp, err := vmis.PortForward("web")(ctx, "udp", ":53")
			require.NoError(t, err)
			cancel() // which does not end what is open

			greeting := make([]byte, 12)
			_, err = io.ReadFull(screen, greeting)
			require.NoError(t, err)
			require.Equal(t, "RFB 003.008\n", string(greeting))
			for _, stream := range []net.Conn{console, screen, tcp, udp} {
				_, err := io.WriteString(stream, "hello")
				require.NoError(t, err)
				got := make([]byte, 5)
				_, err = io.ReadFull(stream, got)
				require.NoError(t, err)
				require.Equal(t, "hello", string(got))
			}
			_, err = vmis.VNC(t.Context(), "web", client.VNCOptions{Preserve: true})
			require.ErrorContains(t, err, "Active VNC connection. Request denied.")

			second, err := vmis.Console(t.Context(), "web")
			require.NoError(t, err)
			_, err = console.Read(greeting)
			require.ErrorIs(t, err, io.ErrUnexpectedEOF, "the second console ends the first")
			s.Disconnect()
			for _, stream := range []net.Conn{second, screen, tcp, udp} {
				_, err = stream.Read(greeting)
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
				require.NoError(t, stream.Close())
			}
		})
	}
}

func TestARefusedStreamIsAnErrorOfTheAPI(t *testing.T) {
	for name, tt := range map[string]struct {
		code     int
		kind     string
		body     string
		is       func(error) bool
		contains string
	}{
		"a Status":         {409, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","message":"VMI is paused","code":409}`, apierrors.IsConflict, "VMI is paused"},
		"a Status cut off": {404, "application/json", `{"kind":"Status","reason":"NotFo`, apierrors.IsNotFound, "NotFo"},
		"text":             {401, "text/plain", "request is not authenticated", apierrors.IsUnauthorized, "request is not authenticated"},
		"nothing":          {503, "", "", apierrors.IsServiceUnavailable, ""},
		"endless bytes":    {500, "text/plain", strings.Repeat("x", 1<<20), apierrors.IsInternalError, ""},
		"another object":   {403, "application/json", `{"kind":"Pod"}`, apierrors.IsForbidden, ""},
		"no refusal":       {200, "text/plain", "hello", func(err error) bool { return err != nil }, "200"},
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tt.kind)
				w.WriteHeader(tt.code)
				_, _ = io.WriteString(w, tt.body)
			})
			_, err := c.VirtualMachineInstances("default").Console(t.Context(), "web")
			require.True(t, tt.is(err), "%v", err)
			require.ErrorContains(t, err, tt.contains)
			require.ErrorContains(t, err, "open console of VirtualMachineInstance default/web")
			require.Less(t, len(err.Error()), 2<<10)
		})
	}
}

func TestACallThatCannotBeSentIsAnError(t *testing.T) {
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Error("asked for " + r.URL.Path) })
	vmis := c.VirtualMachineInstances("default")
	forward := func(network, address string) error {
		_, err := vmis.PortForward("web")(t.Context(), network, address)
		return err
	}
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"no namespace":     {c.VirtualMachineInstances("").Reset(t.Context(), "web"), "for all namespaces"},
		"no name":          {vmis.Reset(t.Context(), ""), "name may not be empty"},
		"a name of a path": {vmis.Reset(t.Context(), "a/../b"), "invalid"},
		"unix":             {forward("unix", ":80"), `the network "unix" is neither tcp nor udp`},
		"no port":          {forward("tcp", "web"), "missing port"},
		"port 0":           {forward("tcp", ":0"), "no port from 1 to 65535"},
		"port 65536":       {forward("udp", ":65536"), "no port from 1 to 65535"},
		"a named port":     {forward("tcp", ":http"), "no port from 1 to 65535"},
	} {
		require.ErrorContains(t, tt.err, tt.want, name)
	}
}

func TestWhatTheAgentReportsIsRead(t *testing.T) {
	c, err := client.New(fake.New(guest()).Config())
	require.NoError(t, err)
	vmis := c.VirtualMachineInstances("default")
	ctx := t.Context()
	info, err := vmis.GuestInfo(ctx, "web")
	require.NoError(t, err)
	require.Equal(t, "Debian", info.OS.Name)
	users, err := vmis.Users(ctx, "web")
	require.NoError(t, err)
	require.Equal(t, "user", users.Items[0].UserName)
	files, err := vmis.FileSystems(ctx, "web")
	require.NoError(t, err)
	require.Equal(t, "virtio", files.Items[0].Disk[0].BusType)
	shot, err := vmis.Screenshot(ctx, "web")
	require.NoError(t, err)
	_, err = png.Decode(bytes.NewReader(shot))
	require.NoError(t, err)

	require.NoError(t, vmis.Freeze(ctx, "web", client.FreezeOptions{}))
	info, err = vmis.GuestInfo(ctx, "web")
	require.NoError(t, err)
	require.Equal(t, "frozen", info.FSFreezeStatus)
	require.NoError(t, vmis.Unfreeze(ctx, "web"))
	require.NoError(t, vmis.Pause(ctx, "web", vmi.PauseOptions{DryRun: []string{"All"}}))
	require.NoError(t, vmis.Pause(ctx, "web", vmi.PauseOptions{}))
	require.True(t, apierrors.IsConflict(vmis.SoftReboot(ctx, "web")))
	require.NoError(t, vmis.Unpause(ctx, "web", vmi.UnpauseOptions{}))
	require.NoError(t, vmis.SoftReboot(ctx, "web"))
	require.NoError(t, vmis.Reset(ctx, "web"))
}

func TestAnAnswerOfTheGuestIsBounded(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for range 9 << 10 {
			if _, err := w.Write(make([]byte, 1<<10)); err != nil {
				return
			}
		}
	})
	_, err := c.VirtualMachineInstances("default").Users(t.Context(), "web")
	require.ErrorContains(t, err, "the answer has more than 8388608 bytes")
	_, err = c.VirtualMachineInstances("default").Screenshot(t.Context(), "web")
	require.ErrorContains(t, err, "the answer is no PNG")
}

func TestAPortServesAnHTTPClient(t *testing.T) {
	c := serve(t, func(http.ResponseWriter, *http.Request) {})
	dial := c.VirtualMachines("default").PortForward("web")
	page, err := (&http.Client{Transport: &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}}).Get("http://web:8080/")
	if err == nil {
		defer page.Body.Close()
	}
	require.ErrorContains(t, err, "open portforward/8080/tcp of VirtualMachine default/web")
}

func TestAnExpandedVMIsRead(t *testing.T) {
	m := vmitest.NewVM(vmi.RunHalted, vmitest.WithName("web"), vmitest.WithCores(3))
	c, err := client.New(fake.New(m).Config())
	require.NoError(t, err)
	got, err := c.VirtualMachines("default").ExpandSpec(t.Context(), "web")
	require.NoError(t, err)
	want := m.Spec.DeepCopy()
	want.Template.Spec = *defaults.Spec(&m.Spec.Template.Spec, defaults.Profile{})
	require.Equal(t, *want, got.Spec)
	_, err = c.VirtualMachines("default").ExpandSpec(t.Context(), "other")
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestAStreamThatIsNotAnsweredEndsWithItsContext(t *testing.T) {
	block := make(chan struct{})
	defer close(block)
	c := serve(t, func(http.ResponseWriter, *http.Request) { <-block })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.VirtualMachineInstances("default").Console(ctx, "web")
	require.True(t, errors.Is(err, context.DeadlineExceeded), "%v", err)
}
