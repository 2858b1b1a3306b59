package controller

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/network/link"
	"github.com/podvisor/podvisor/network/networktest"
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
		Put: func(control.Desired) error { return nil },
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
			v := defaults.Apply(vmitest.New(binding), defaults.Profile{})
			began := time.Now()
			bind := BindNetwork(nil)
			first, err := bind(t.Context(), launcher, v)
			require.NoError(t, err)
			t.Logf("bound in %s", time.Since(began))
			require.Len(t, first.Attachments, 1)
			require.NotEmpty(t, first.Interfaces[0].IP)
			made, err := link.Observe(pod)
			require.NoError(t, err)

			began = time.Now()
			again, err := bind(t.Context(), launcher, v)
			require.NoError(t, err)
			t.Logf("bound again in %s", time.Since(began))
			require.Equal(t, first, again, "a handler that restarts puts the same to the launcher")
			same, err := link.Observe(pod)
			require.NoError(t, err)
			require.Equal(t, made, same, "and changes no link")
		})
	}
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
			_, err := BindNetwork(nil)(t.Context(), launcherIn(t, file), defaults.Apply(vmitest.New(vmitest.WithMasquerade("default")), defaults.Profile{}))
			require.Error(t, err)
		})
	}
}
