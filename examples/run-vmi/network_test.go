package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// listener is a port of 127.0.0.1 in use, that is not root's.
func listener(t *testing.T) (*net.TCPListener, int) {
	t.Helper()
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l, l.Addr().(*net.TCPAddr).Port
}

func TestPortsOfAGuestArePortsOfTheHost(t *testing.T) {
	_, used := listener(t)
	for name, tt := range map[string]struct {
		spec  vmi.Interface
		ports map[int]int
		want  []forward
		err   string
	}{
		"none":                            {},
		"by its number":                   {spec: vmi.Interface{Ports: []vmi.Port{{Port: 23456}}}, want: []forward{{"TCP", 23456, 23456, 1}}},
		"of UDP":                          {spec: vmi.Interface{Ports: []vmi.Port{{Port: 23456, Protocol: "UDP"}}}, want: []forward{{"UDP", 23456, 23456, 1}}},
		"one that only root may open":     {spec: vmi.Interface{Ports: []vmi.Port{{Port: 81}}}, want: []forward{{"TCP", 81, 8081, 1}}},
		"one that the user moves":         {spec: vmi.Interface{Ports: []vmi.Port{{Port: 81}}}, ports: map[int]int{81: 23457}, want: []forward{{"TCP", 81, 23457, 1}}},
		"a range":                         {spec: vmi.Interface{PortRanges: []vmi.PortRange{{Protocol: "TCP", Start: 23456, End: 23458}}}, want: []forward{{"TCP", 23456, 23456, 3}}},
		"a range that only root may open": {spec: vmi.Interface{PortRanges: []vmi.PortRange{{Protocol: "TCP", Start: 80, End: 90}}}, err: "ports 80 to 90 of the guest: ports below 1024 are root's on this host: list those that you need in ports"},
		"one that is in use": {spec: vmi.Interface{Ports: []vmi.Port{{Port: int32(used)}}},
			err: fmt.Sprintf("port %[1]d of the guest: listen tcp4 127.0.0.1:%[1]d: bind: address already in use: choose another with -port %[1]d=PORT", used)},
		"two that would be one": {spec: vmi.Interface{Ports: []vmi.Port{{Port: 8081}, {Port: 81}}},
			err: "port 81 of the guest: port 8081 of the host leads to another already: choose another with -port 81=PORT"},
		"TCP and UDP of one number": {spec: vmi.Interface{Ports: []vmi.Port{{Port: 23456}, {Port: 23456, Protocol: "UDP"}}}, want: []forward{{"TCP", 23456, 23456, 1}, {"UDP", 23456, 23456, 1}}},
		"one that no interface has": {ports: map[int]int{82: 8082}, err: "-port 82=8082: no interface of the VMI has port 82"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.spec.Name = "default"
			h := host{ports: tt.ports}
			got, err := h.forwards([]vmi.Interface{tt.spec})
			if tt.err != "" {
				require.EqualError(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got["default"])
		})
	}
	require.Equal(t, []string{"--tcp-ports", "127.0.0.1/8081-8083:81-83"}, forward{"TCP", 81, 8081, 3}.arguments())
	require.Equal(t, []string{"--udp-ports", "127.0.0.1/8053-8053:53-53"}, forward{"UDP", 53, 8053, 1}.arguments())
}

func TestAGuestAsksNameServersThatItCanReach(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	local := write("local", "# of systemd-resolved\nnameserver 127.0.0.53\noptions edns0\n")
	both := write("both", "nameserver 127.0.0.1\nnameserver 192.0.2.53\nnameserver fe80::1%eth0\nnameserver 2001:db8::53\n")
	require.Equal(t, []netip.Addr{netip.MustParseAddr("192.0.2.53"), netip.MustParseAddr("2001:db8::53")}, nameServers([]string{local, both}))
	require.Empty(t, nameServers([]string{local, filepath.Join(dir, "none")}))
}

func TestAttackAConnectionOfAnotherUserIsNotTheGuests(t *testing.T) {
	testenv.Root(t)
	testenv.Program(t, "setpriv")
	bash := testenv.Program(t, "bash")
	l, port := listener(t)
	got := make(chan *net.TCPConn, 1)
	go func() {
		c, err := accept(l)
		if err == nil {
			got <- c
		}
	}()
	out, err := exec.Command("setpriv", "--reuid", user, "--clear-groups", bash, "-c", fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d && timeout 30 cat <&3", port)).CombinedOutput()
	require.NoError(t, err, "%s", out) // it is closed
	require.Empty(t, got)
	mine, err := net.Dial("tcp4", l.Addr().String())
	require.NoError(t, err)
	defer mine.Close()
	select {
	case c := <-got:
		require.Equal(t, mine.LocalAddr().String(), c.RemoteAddr().String())
		require.NoError(t, c.Close())
	case <-time.After(time.Minute):
		require.FailNow(t, "timeout: the connection of this user is accepted")
	}
}

func TestAnInterfaceIsAServerThatEndsWithTheGuest(t *testing.T) {
	testenv.Program(t, "passt")
	v := &vmi.VirtualMachineInstance{}
	v.Spec.Domain.Devices.Interfaces = []vmi.Interface{{Name: "default", MacAddress: "02:00:00:00:00:01", Ports: []vmi.Port{{Port: 79}}}}
	var notes bytes.Buffer
	h := host{notes: &notes, log: slog.New(slog.DiscardHandler)}
	all, unbind, err := h.interfaces(v)
	require.NoError(t, err)
	require.Equal(t, []network.Attachment{{Name: "default", MAC: "02:00:00:00:00:01", Backend: network.BackendTCP, Server: all[0].Server}}, all)
	require.Equal(t, "run-vmi: TCP port 79 of the guest is 127.0.0.1:8079\n", notes.String())
	unbind()
	_, err = net.Dial("tcp4", all[0].Server.String())
	require.Error(t, err)

	t.Setenv("PATH", t.TempDir())
	_, _, err = h.interfaces(v)
	require.EqualError(t, err, "the network of the guest needs the program passt: install it (apt-get install passt), or choose -network user or -network none")
	v.Spec.Domain.Devices.Interfaces = nil
	_, _, err = h.interfaces(v)
	require.NoError(t, err, "a VMI without interfaces does not need it")
}
