package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/examples/command"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestPortsAreParsed(t *testing.T) {
	for text, want := range map[string]port{
		"80":          {80, 80, "tcp"},
		"8080:80":     {8080, 80, "tcp"},
		"0:53/udp":    {0, 53, "udp"},
		"22/tcp":      {22, 22, "tcp"},
		"0":           {},
		"80:0":        {},
		"65536":       {},
		"a":           {},
		"":            {},
		"80:80:80":    {},
		"80/sctp":     {},
		"-1:80":       {},
		"80/udp/more": {},
	} {
		got, err := parsePort(text)
		require.Equal(t, want, got, text)
		if want.network == "" {
			require.ErrorAs(t, err, new(command.Fault), text)
		}
	}
}

// forwarding is a forwarder that serves the ports, and their addresses.
func forwarding(t *testing.T, guest string, ports ...port) (addresses []string, notes func() string) {
	t.Helper()
	v := vmitest.New(vmitest.WithName("web"), vmitest.WithPhase(vmi.PhaseRunning))
	v.Status.Interfaces = []vmi.InterfaceStatus{{Name: "default"}}
	m := vmitest.NewVM(vmi.RunAlways, vmitest.WithName("web"))
	m.Status.Created, m.UID = true, "vm-uid"
	v.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(m, vmi.VirtualMachines.GroupVersionKind)}
	c, err := client.New(fake.New(v, m).Config())
	require.NoError(t, err)
	dial, err := dialer(c, "default", guest)
	require.NoError(t, err)
	out, in := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	b := &buffer{}
	f := &forwarder{guest: guest, dial: dial, address: "127.0.0.1", out: in, notes: b}
	ended := make(chan error, 1)
	go func() { ended <- f.run(ctx, ports) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	lines := bufio.NewScanner(out)
	for range ports {
		require.True(t, lines.Scan())
		at, rest, _ := strings.Cut(lines.Text(), " ")
		require.Contains(t, rest, "of "+guest)
		addresses = append(addresses, at)
	}
	return addresses, b.String
}

// buffer is written while it is read.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestPortsLeadToTheGuest(t *testing.T) {
	for _, guest := range []string{"vm/web", "vmi/web"} {
		t.Run(guest, func(t *testing.T) {
			at, notes := forwarding(t, guest, port{0, 80, "tcp"}, port{0, 53, "udp"})
			var all sync.WaitGroup
			for i, network := range []string{"tcp", "udp", "tcp", "udp"} {
				all.Go(func() {
					c, err := net.Dial(network, at[i%2])
					require.NoError(t, err)
					defer c.Close()
					require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
					for _, text := range []string{"one", "two"} {
						_, err = io.WriteString(c, text+network)
						require.NoError(t, err)
						got := make([]byte, 6)
						_, err = io.ReadFull(c, got)
						require.NoError(t, err)
						require.Equal(t, text+network, string(got))
					}
				})
			}
			all.Wait()
			require.Empty(t, notes())
		})
	}
}

func TestAConnectionThatIsRefusedIsReportedAndThePortStaysOpen(t *testing.T) {
	at, notes := forwarding(t, "vmi/other", port{0, 80, "tcp"})
	for range 2 {
		c, err := net.Dial("tcp", at[0])
		require.NoError(t, err)
		_, err = c.Read(make([]byte, 1))
		require.Error(t, err)
	}
	require.Equal(t, 2, strings.Count(notes(), `virtualmachineinstance.kubevirt.io "other" not found`), notes())
}

func TestAGuestThatDoesNotExistIsSaidBeforeAPortIsOpen(t *testing.T) {
	v := vmitest.New(vmitest.WithName("web"))
	v.Namespace = "default"
	c, err := client.New(fake.New(v).Config())
	require.NoError(t, err)
	require.NoError(t, exists(t.Context(), c, "default", "vmi/web"))
	for _, guest := range []string{"vmi/wep", "vm/web"} {
		err := exists(t.Context(), c, "default", guest)
		require.ErrorContains(t, err, "find "+guest+" in namespace default: ")
		require.True(t, apierrors.IsNotFound(err))
	}
}

func TestTheCommandLineIsChecked(t *testing.T) {
	for name, args := range map[string][]string{
		"no port":      {"vm/web"},
		"a wrong port": {"vm/web", "80/sctp"},
	} {
		require.ErrorAs(t, run(args), new(command.Fault), name)
	}
	for _, guest := range []string{"web", "pod/web", "vm/"} {
		_, err := dialer(nil, "", guest)
		require.ErrorAs(t, err, new(command.Fault), guest)
	}
}
