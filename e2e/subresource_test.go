package e2e

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/podvisor/podvisor/internal/browser"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// One guest is used by everything that people do with a VM: by package client, and by the
// page of examples/vnc-web in a real browser. The users have Kubernetes' own roles.
func TestPeopleUseAVMThroughTheAPI(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	u, admin := s.user("edit"), s.user("admin")
	desk := guest("desk", cloudConfig("hostname: desk"))
	desk.Spec.TerminationGracePeriodSeconds = new(int64(5))
	s.applyVM(vmi.RunHalted, desk)
	page := u.openPage()

	require.NoError(t, u.vms.Start(t.Context(), "desk", vmi.StartOptions{Paused: true}))
	s.next("desk", "")
	v := s.awaitPaused("desk", true)
	require.True(t, apierrors.IsConflict(u.vms.Start(t.Context(), "desk", vmi.StartOptions{})), "it is there already")
	dark, err := admin.screenshot(t.Context(), "desk")
	require.NoError(t, err)

	// The guest boots when the button of the page is pressed.
	page.until("Paused")
	page.click("Screen")
	page.click("Unpause")
	page.until("Running")
	s.awaitPaused("desk", false)
	page.showsWhat(admin, "desk", dark)

	u.useConsole("desk")
	u.useScreen("desk", admin)
	u.usePorts("desk")

	page.typesIntoTheGuest(v, u)
	page.click("Pause")
	s.awaitPaused("desk", true)
	page.until("Paused")
	require.NoError(t, u.vmis.Unpause(t.Context(), "desk", vmi.UnpauseOptions{}))
	s.awaitPaused("desk", false)

	require.NoError(t, u.vms.Restart(t.Context(), "desk", vmi.RestartOptions{GracePeriodSeconds: new(int64)}))
	second := s.next("desk", v.UID)
	page.until("Running")
	page.click("Stop")
	s.awaitPrintable("desk", vmi.StatusStopped)
	require.ErrorContains(t, u.vms.Stop(t.Context(), "desk", vmi.StopOptions{}), "VM is not running")
	page.until(string(vmi.StatusStopped))
	page.click("Start")
	third := s.next("desk", second.UID)
	open := []*terminal{u.console("desk"), u.watch(u.screen("desk", client.VNCOptions{}))}
	require.NoError(t, u.vms.Stop(t.Context(), "desk", vmi.StopOptions{GracePeriod: new(int64)}))
	for _, stream := range open {
		stream.isCut()
	}
	s.awaitGone(third)
	s.awaitPrintable("desk", vmi.StatusStopped)
	require.Equal(t, vmi.RunHalted, s.getVM("desk").Spec.Strategy())
}

// useConsole types and gets an answer, and loses the console to the next who opens it.
func (u user) useConsole(name string) {
	u.t.Helper()
	first := u.console(name)
	first.shows("root@"+name, "\r")
	first.types("echo answer-$((6*7))\r")
	first.shows("answer-42", "")
	second := u.console(name)
	first.isCut()
	second.types("\r")
	second.shows("root@"+name, "")
	second.types("(read x </dev/tty1; echo pressed-$x-there >/dev/ttyS0) &\r")
	second.shows(">/dev/ttyS0) &\r\n", "")
	require.NoError(u.t, second.stream.Close())
	for range 3 { // who has left is not in the way
		again := u.console(name)
		again.shows("root@"+name, "\r")
		require.NoError(u.t, again.stream.Close())
	}
}

// useScreen opens the screen again and again, and takes a picture, which the role edit
// does not permit, as KubeVirt's does not.
func (u user) useScreen(name string, admin user) {
	t := u.t
	t.Helper()
	for range 10 {
		require.NoError(t, u.screen(name, client.VNCOptions{}).Close())
	}
	var first net.Conn
	eventually(t, soon, func() error { // once the node has noticed that the last has left
		stream, err := u.vmis.VNC(t.Context(), name, client.VNCOptions{Preserve: true})
		first = stream
		return err
	})
	_, err := io.ReadFull(first, make([]byte, 12))
	require.NoError(t, err)
	kept := u.watch(first)
	_, err = u.vmis.VNC(t.Context(), name, client.VNCOptions{Preserve: true})
	require.ErrorContains(t, err, "Active VNC connection. Request denied.")
	second := u.screen(name, client.VNCOptions{})
	kept.isCut()
	size := u.size(second)
	require.NoError(t, second.Close())

	_, err = u.vmis.Screenshot(t.Context(), name)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	picture, err := admin.screenshot(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, size, picture.Bounds().Size())
	require.NotZero(t, lit(picture), "it is not of one colour")
}

// usePorts gets the guest's page, and an error of a port that nothing listens at.
func (u user) usePorts(name string) {
	t := u.t
	t.Helper()
	for kind, dial := range map[string]client.Dial{"vm": u.vms.PortForward(name), "vmi": u.vmis.PortForward(name)} {
		web := http.Client{Timeout: soon, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
		answer, err := web.Get("http://" + name)
		require.NoError(t, err, kind)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Contains(t, string(text), name)
		_, err = dial(t.Context(), "tcp", ":81")
		require.ErrorContains(t, err, "connection refused", "nothing was waited for")
	}
}

// webPage is the page of examples/vnc-web, whose list has one VM.
type webPage struct {
	*browser.Browser
	t *testing.T
}

// openPage starts the program with the user's kubeconfig, and opens its page.
func (u user) openPage() webPage {
	u.t.Helper()
	testenv.Program(u.t, "npm")
	root, err := filepath.Abs("..")
	require.NoError(u.t, err)
	program := filepath.Join(u.t.TempDir(), "vnc-web")
	for _, args := range [][]string{{"examples/vnc-web/vendor.sh"}, {"go", "build", "-o", program, "./examples/vnc-web"}} {
		c := exec.CommandContext(u.t.Context(), args[0], args[1:]...)
		c.Dir = root
		out, err := c.CombinedOutput()
		require.NoError(u.t, err, "%s", out)
	}
	c := exec.Command(program)
	c.Env = append(os.Environ(), "KUBECONFIG="+u.kubeconfig)
	out, err := c.StdoutPipe()
	require.NoError(u.t, err)
	var log testenv.Output
	c.Stderr = &log
	require.NoError(u.t, c.Start())
	u.t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		require.NoError(u.t, c.Wait(), "%s", &log)
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(u.t, err, "%s", &log)
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "open ")
	require.True(u.t, ok, "%q", line)
	p := webPage{browser.Open(u.t, url), u.t}
	p.until(string(vmi.StatusStopped))
	return p
}

// until waits for the state that the list shows.
func (p webPage) until(state string) {
	p.t.Helper()
	p.Until(p.t, state, "document.querySelector('#list tr td:nth-child(3)').textContent")
}

// click clicks a button of the list, once it can be.
func (p webPage) click(button string) {
	p.t.Helper()
	found := fmt.Sprintf("[...document.querySelectorAll('#list button')].find(b => b.textContent === %q && !b.disabled)", button)
	p.Until(p.t, "true", "("+found+" !== undefined && ("+found+".click(), true))")
	p.Until(p.t, "", "document.getElementById('note').textContent")
}

// canvas is the screen that the page shows.
func (p webPage) canvas() (image.Image, error) {
	const prefix = "data:image/png;base64,"
	text, err := p.Eval("document.querySelector('#screen canvas').toDataURL('image/png')")
	if err != nil {
		return nil, err
	}
	b, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, prefix))
	if err != nil {
		return nil, err
	}
	return png.Decode(bytes.NewReader(b))
}

// showsWhat waits until the page shows what a screenshot shows, which is something else
// than before.
func (p webPage) showsWhat(admin user, name string, before image.Image) image.Image {
	p.t.Helper()
	var got image.Image
	eventually(p.t, boots, func() error {
		want, err := admin.screenshot(p.t.Context(), name)
		if err != nil {
			return err
		}
		if got, err = p.canvas(); err != nil {
			return err
		}
		// The cursor blinks.
		same, new := alike(got, want), alike(before, want)
		if lit(want) < 0.001 || same < 0.95 || new > 0.9 {
			return fmt.Errorf("the page shows %.3f of a screenshot of %v, of which %.4f is lit; before, it had %.3f of it", same, want.Bounds().Size(), lit(want), new)
		}
		return nil
	})
	return got
}

// typesIntoTheGuest presses keys at the screen and in the terminal of the page. The guest
// waits for a line of its keyboard.
func (p webPage) typesIntoTheGuest(v *vmi.VirtualMachineInstance, u user) {
	p.t.Helper()
	p.click("Screen")
	p.Until(p.t, "CANVAS", "document.activeElement.tagName")
	var before image.Image
	eventually(p.t, soon, func() (err error) {
		if before, err = p.canvas(); err == nil && lit(before) < 0.001 {
			err = fmt.Errorf("the page does not show the screen yet")
		}
		return err
	})
	p.Press(p.t, "mmmmmmmmmm")
	eventually(p.t, soon, func() error {
		after, err := p.canvas()
		if err == nil && lit(after) <= lit(before)*1.02 {
			err = fmt.Errorf("the guest does not show what was typed: %.5f of it is lit, %.5f before", lit(after), lit(before))
		}
		return err
	})
	p.Press(p.t, "\n")
	u.awaitConsole(v, "pressed-mmmmmmmmmm-there")

	p.click("Console")
	p.Until(p.t, "TEXTAREA", "document.activeElement.tagName")
	rows := "document.querySelector('.xterm-rows').textContent.includes(%q)"
	p.Until(p.t, "null", "document.querySelector('#screen canvas')")
	p.Press(p.t, "\n")
	p.Until(p.t, "true", fmt.Sprintf(rows, "root@"+v.Name))
	p.Press(p.t, "id\n")
	p.Until(p.t, "true", fmt.Sprintf(rows, "uid=0"))
	_, err := p.Eval("document.getElementById('close').click()")
	require.NoError(p.t, err)
}
