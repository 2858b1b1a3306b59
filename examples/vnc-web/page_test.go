package main

import (
	"context"
	"fmt"
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

	"github.com/podvisor/podvisor/internal/browser"
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

	running := vmitest.New(vmitest.WithName("web"), vmitest.WithPhase(vmi.PhaseRunning))
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

	b := browser.Open(t, s.url())
	cell := func(row, column string) string {
		return "document.querySelector('#list tr:nth-child(" + row + ") td:nth-child(" + column + ")').textContent"
	}
	b.Until(t, "off", cell("1", "2"))
	b.Until(t, "Stopped", cell("1", "3"))
	b.Until(t, "web", cell("2", "2"))
	b.Until(t, "Running", cell("2", "3"))

	click(t, b, 1, "Screen")
	pixel := "document.querySelector('#screen canvas').getContext('2d').getImageData(80, 50, 1, 1).data"
	b.Until(t, "255,0,0,255", pixel)
	b.Until(t, "CANVAS", "document.activeElement.tagName")
	b.Press(t, "k")
	select {
	case k := <-keys:
		require.EqualValues(t, 'k', k)
	case <-time.After(time.Minute):
		require.Fail(t, "the key has not reached the guest")
	}
	b.Until(t, "0,255,0,255", pixel)

	click(t, b, 1, "Console")
	b.Until(t, "null", "document.querySelector('#screen canvas')")
	b.Until(t, "TEXTAREA", "document.activeElement.tagName")
	b.Press(t, "hello")
	b.Until(t, "hello", "document.querySelector('.xterm-rows').textContent.trim()")
	_, err = b.Eval("document.getElementById('close').click()")
	require.NoError(t, err)

	click(t, b, 1, "Pause")
	b.Until(t, "Paused", cell("2", "3"))
	click(t, b, 1, "Unpause")
	b.Until(t, "Running", cell("2", "3"))
	click(t, b, 0, "Start")
	require.Eventually(t, func() bool {
		m, err := c.VirtualMachines("default").Get(t.Context(), "off", metav1.GetOptions{})
		return err == nil && m.Spec.Strategy() == vmi.RunAlways
	}, time.Minute, 10*time.Millisecond)
	b.Until(t, "", "document.getElementById('note').textContent")
}

// click clicks a button of a row of the list.
func click(t *testing.T, b *browser.Browser, row int, text string) {
	t.Helper()
	_, err := b.Eval(fmt.Sprintf("[...document.querySelectorAll('#list tr')[%d].querySelectorAll('button')].find(b => b.textContent === %q && !b.disabled).click()", row, text))
	require.NoError(t, err, text)
}
