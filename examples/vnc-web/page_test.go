package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/internal/websocket"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// The browser, noVNC and xterm.js are the real ones. The API server is the fake one, with a
// screen.
func TestThePageShowsVMsAndTheirScreensAndConsoles(t *testing.T) {
	testenv.Program(t, "chromium")
	testenv.Program(t, "npm")
	out, err := exec.CommandContext(t.Context(), "./vendor.sh").CombinedOutput()
	require.NoError(t, err, "%s", out)

	running := vmitest.New(vmitest.WithName("web"), vmitest.WithPhase(vmi.Running))
	off := vmitest.NewVM(vmi.RunHalted, vmitest.WithName("off"))
	off.Status.PrintableStatus = vmi.StatusStopped
	api := fake.New(running, off)
	keys := make(chan uint32, 100)
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Base(r.URL.Path) != "vnc" {
			api.ServeHTTP(w, r)
			return
		}
		stream, err := websocket.Accept(w, r, websocket.Options{})
		if err == nil {
			_ = serveRFB(stream, keys)
			_ = stream.Close()
		}
	}))
	defer cluster.Close()
	c, err := client.New(&rest.Config{Host: cluster.URL})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := newServer(c, "default", os.DirFS("page"), l.Addr().String())
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, l, s) }()
	defer func() { stop(); require.NoError(t, <-ended) }()

	b := openBrowser(t, s.url())
	cell := func(row, column string) string {
		return "document.querySelector('#list tr:nth-child(" + row + ") td:nth-child(" + column + ")').textContent"
	}
	b.until(t, "off", cell("1", "2"))
	b.until(t, "Stopped", cell("1", "3"))
	b.until(t, "web", cell("2", "2"))
	b.until(t, "Running", cell("2", "3"))

	b.click(t, 1, "Screen")
	pixel := "document.querySelector('#screen canvas').getContext('2d').getImageData(80, 50, 1, 1).data"
	b.until(t, "255,0,0,255", pixel)
	b.until(t, "CANVAS", "document.activeElement.tagName")
	b.press(t, "k")
	select {
	case k := <-keys:
		require.EqualValues(t, 'k', k)
	case <-time.After(time.Minute):
		require.Fail(t, "the key has not reached the guest")
	}
	b.until(t, "0,255,0,255", pixel)

	b.click(t, 1, "Console")
	b.until(t, "null", "document.querySelector('#screen canvas')")
	b.until(t, "TEXTAREA", "document.activeElement.tagName")
	b.press(t, "hello")
	b.until(t, "hello", "document.querySelector('.xterm-rows').textContent.trim()")
	_, err = b.eval("document.getElementById('close').click()")
	require.NoError(t, err)

	b.click(t, 1, "Pause")
	b.until(t, "Paused", cell("2", "3"))
	b.click(t, 1, "Unpause")
	b.until(t, "Running", cell("2", "3"))
	b.click(t, 0, "Start")
	require.Eventually(t, func() bool {
		m, err := c.VirtualMachines("default").Get(t.Context(), "off", metav1.GetOptions{})
		return err == nil && m.Spec.Strategy() == vmi.RunAlways
	}, time.Minute, 10*time.Millisecond)
	b.until(t, "", "document.getElementById('note').textContent")
}
