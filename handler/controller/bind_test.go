package controller

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/link"
	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// launcherIn is a client of a launcher that sends this file as its network
// namespace.
func launcherIn(t *testing.T, file string) *control.Client {
	t.Helper()
	w := newWorld(t)
	l, err := net.Listen("unix", w.socket)
	require.NoError(t, err)
	s := control.NewServer(control.ServerConfig{
		Namespace: "default", Name: "testvmi", UID: vmitest.UID, NetworkNamespace: file,
		Put: func(protocol.Desired) error { return nil },
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return control.NewClient(func(ctx context.Context) (net.Conn, error) { return w.dial(ctx, podUID) })
}

func TestBindingTwiceChangesNothing(t *testing.T) {
	testenv.Root(t)
	for name, binding := range map[string]vmitest.Option{"masquerade": vmitest.WithMasquerade("default"), "bridge": vmitest.WithBridge("default")} {
		t.Run(name, func(t *testing.T) {
			pod, _ := networktest.Pod(t)
			launcher := launcherIn(t, fmt.Sprintf("/proc/self/fd/%d", pod.Fd()))
			v := defaults.Instance(vmitest.New(binding), defaults.Profile{})
			began := time.Now()
			bind := (&binder{}).bind
			first, err := bind(t.Context(), launcher, v)
			require.NoError(t, err)
			t.Logf("bound in %s", time.Since(began))
			require.Len(t, first.Attachments, 1)
			require.NotEmpty(t, first.Interfaces[0].IP)
			made, err := link.Observe(t.Context(), pod)
			require.NoError(t, err)

			began = time.Now()
			again, err := bind(t.Context(), launcher, v)
			require.NoError(t, err)
			t.Logf("bound again in %s", time.Since(began))
			require.Equal(t, first, again, "a handler that restarts puts the same to the launcher")
			same, err := link.Observe(t.Context(), pod)
			require.NoError(t, err)
			require.Equal(t, made, same, "and changes no link")
		})
	}
}

// direct is a binding that attaches the guest to the pod's link itself.
type direct struct{}

func (direct) Traits() network.Traits         { return network.Traits{} }
func (direct) Serves(spec vmi.Interface) bool { return spec.Binding != nil }
func (direct) Bound(network.Interface) bool   { return false }
func (direct) Plan(i network.Interface) (network.Config, error) {
	pod, err := i.Pod()
	return network.Config{Attachments: []network.Attachment{{Name: i.Spec.Name, Tap: i.Names.Pod, MAC: pod.MAC}}}, err
}

func TestAControllerBindsByTheBindingsOfItsConfig(t *testing.T) {
	testenv.Root(t)
	pod, _ := networktest.Pod(t)
	w := newWorld(t)
	w.config.Bind, w.config.Bindings = nil, []network.Binding{direct{}}
	c, err := New(w.config)
	require.NoError(t, err)
	v := networktest.Instance(vmi.InterfaceBinding{})
	v.Spec.Domain.Devices.Interfaces[0].Binding = &vmi.PluginBinding{Name: "direct"}
	n, err := c.config.Bind(t.Context(), launcherIn(t, fmt.Sprintf("/proc/self/fd/%d", pod.Fd())), v)
	require.NoError(t, err)
	require.Equal(t, []network.Attachment{{Name: "default", Tap: "eth0", MAC: networktest.PodMAC}}, n.Attachments)

	_, err = c.config.Bind(t.Context(), launcherIn(t, fmt.Sprintf("/proc/self/fd/%d", pod.Fd())), networktest.Instance(networktest.Bridge))
	require.ErrorIs(t, err, vmi.ErrInvalid, "the built-in bindings are not in the list")
}

func TestBindingRefusesWhatIsNotThePodsNamespace(t *testing.T) {
	testenv.Root(t)
	for name, file := range map[string]string{
		"our own":                          "/proc/self/ns/net",
		"a namespace of another kind":      "/proc/self/ns/mnt",
		"a file":                           "/proc/self/cmdline",
		"a folder that looks like nothing": os.TempDir(),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (&binder{}).bind(t.Context(), launcherIn(t, file), defaults.Instance(vmitest.New(vmitest.WithMasquerade("default")), defaults.Profile{}))
			require.Error(t, err)
		})
	}
}

func TestAttackByTheNetworkNamespaceOfAnotherPod(t *testing.T) {
	testenv.Root(t)
	pod, _ := networktest.Pod(t)
	theirs, _ := networktest.Pod(t)
	file := func(f *os.File) *control.Client { return launcherIn(t, fmt.Sprintf("/proc/self/fd/%d", f.Fd())) }
	bind := (&binder{}).bind
	victim := networktest.Instance(networktest.Masquerade)
	victim.UID = "victim"
	thief := networktest.Instance(networktest.Masquerade)
	thief.UID = "thief"
	_, err := bind(t.Context(), file(pod), victim)
	require.NoError(t, err)
	bound, err := link.Observe(t.Context(), pod)
	require.NoError(t, err)
	_, err = bind(t.Context(), file(pod), thief)
	require.ErrorIs(t, err, errClaimed)
	after, err := link.Observe(t.Context(), pod)
	require.NoError(t, err)
	require.Equal(t, bound, after)
	_, err = bind(t.Context(), file(pod), victim)
	require.NoError(t, err)
	_, err = bind(t.Context(), file(theirs), thief)
	require.NoError(t, err)
}

func TestClaimsAreBounded(t *testing.T) {
	t.Parallel()
	var c claims
	for i := range uint64(3 * claimsKept) {
		require.NoError(t, c.claim(i, "a"))
	}
	require.Len(t, c.of, claimsKept)
	require.Len(t, c.order, claimsKept)
	require.ErrorIs(t, c.claim(3*claimsKept-1, "b"), errClaimed)
}
