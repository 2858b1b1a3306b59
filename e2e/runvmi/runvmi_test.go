// Package runvmi tests examples/run-vmi with a guest that has a network.
package runvmi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/testenv"
)

// The host of the test is a network namespace: its only network leads to outside.
const (
	inside  = "198.51.100.2/24"
	outside = "198.51.100.1/24"
	greeter = "198.51.100.1 8000"
	port    = ":8000"
)

// manifest is a guest that connects to outside and shows on port 80 what it gets. It ends
// its side of the connection last: passt 2023-03 can lose one whose guest ends first.
const manifest = `
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: hello}
spec:
  terminationGracePeriodSeconds: 60
  domain:
    memory: {guest: 96Mi}
    devices:
      disks: [{name: root, disk: {bus: virtio}}, {name: seed, disk: {bus: virtio}}]
      interfaces: [{name: default, masquerade: {}, ports: [{port: 80}]}]
  networks: [{name: default, pod: {}}]
  volumes:
  - {name: root, containerDisk: {image: "example/guest:1"}}
  - name: seed
    cloudInitNoCloud:
      userData: |
        #!/bin/sh
        mkfifo /run/open
        nc -w 120 ` + greeter + ` <>/run/open >/www/copy
        echo "the copy is made" > /dev/console
`

// command runs a program and returns what it prints.
func command(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
	require.NoError(t, err, "%v: %s", args, out)
	return string(out)
}

// host makes a network namespace in which run-vmi runs, and one that is all that is outside
// of it. A server there says so, and so does another one, of the same port, on the
// loopback of the first. Nothing is made in the namespace of the test: what a test leaves
// that was killed disturbs no other one.
func host(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("podvisor-run-%d", os.Getpid())
	beyond := name + "-outside"
	t.Cleanup(func() {
		for _, n := range []string{name, beyond} {
			_ = exec.Command("ip", "netns", "del", n).Run()
		}
	})
	gateway := strings.Split(outside, "/")[0]
	for _, line := range []string{
		"netns add " + name,
		"netns add " + beyond,
		"-n " + beyond + " link add eth0 type veth peer name eth0 netns " + name,
		"-n " + beyond + " addr add " + outside + " dev eth0",
		"-n " + beyond + " link set eth0 up",
		"-n " + name + " link set lo up",
		"-n " + name + " link set eth0 up",
		"-n " + name + " addr add " + inside + " dev eth0",
		"-n " + name + " route add default via " + gateway,
	} {
		command(t, append([]string{"ip"}, strings.Fields(line)...)...)
	}
	for _, l := range []struct{ namespace, address, words string }{
		{beyond, gateway, "from outside"},
		{name, "127.0.0.1", "from loopback"},
	} {
		within(t, l.namespace, func() error {
			listener, err := net.Listen("tcp4", l.address+port)
			if err == nil {
				greet(t, listener, l.words)
			}
			return err
		})
	}
	return name
}

// greet says words to each connection.
func greet(t *testing.T, l net.Listener, words string) {
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, words)
			_ = c.(*net.TCPConn).CloseWrite() // the client ends by it, and need not be the first
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
}

// within runs f in a network namespace.
func within(t *testing.T, namespace string, f func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		ns, err := os.Open("/run/netns/" + namespace)
		if err == nil {
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
			_ = ns.Close()
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	require.NoError(t, <-done)
}

// fetch fetches a page of the guest.
func fetch(t *testing.T, namespace, path string) string {
	t.Helper()
	var body []byte
	within(t, namespace, func() error {
		c, err := net.Dial("tcp4", "127.0.0.1:8080")
		if err != nil {
			return err
		}
		defer c.Close()
		fmt.Fprintf(c, "GET %s HTTP/1.0\r\n\r\n", path)
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return err
		}
		defer r.Body.Close()
		body, err = io.ReadAll(r.Body)
		return err
	})
	return string(body)
}

// The guest has the address of its host, reaches what is outside, and answers at a port
// of the host's loopback, which it does not reach itself.
func TestAGuestIsOnTheNetworkOfItsHostByPasst(t *testing.T) {
	testenv.Root(t)
	for _, name := range []string{"ip", "setpriv", "passt", "qemu-system-x86_64"} {
		testenv.Program(t, name)
	}
	namespace := host(t)
	g := guest{T: t, manifest: manifest, host: []string{"ip", "netns", "exec", namespace}, toBoot: 6 * time.Minute, toEnd: 3 * time.Minute}
	g.start()
	g.says("podvisor-guest: eth0 has address " + inside)
	g.says("the copy is made")
	require.Contains(t, g.notes.String(), "run-vmi: TCP port 80 of the guest is 127.0.0.1:8080\n")
	require.Equal(t, "from outside", fetch(t, namespace, "/copy"))

	g.powersOff()
	require.NotContains(t, g.notes.String(), "the guest's network has ended")
}
