package link

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/network"
)

func TestCheckRefusesAllButTheNetworkNamespaceOfAnotherProcess(t *testing.T) {
	require.NoError(t, Check(networktest.Namespace(t), nil))
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	for _, path := range []string{"/proc/self/ns/mnt", "/proc/self/ns/user", "/proc/self", "/dev/null", file, ownNamespace} {
		t.Run(path, func(t *testing.T) {
			f, err := os.Open(path)
			require.NoError(t, err)
			defer f.Close()
			require.ErrorIs(t, Check(f, nil), ErrNamespace)
		})
	}
}

func TestNoThreadStaysInTheNamespace(t *testing.T) {
	pod, _ := networktest.Pod(t)
	for range 50 {
		_, err := Observe(t.Context(), pod)
		require.NoError(t, err)
	}
	theirs, err := pod.Stat()
	require.NoError(t, err)
	threads, err := filepath.Glob("/proc/self/task/*/ns/net")
	require.NoError(t, err)
	for _, path := range threads {
		// Threads may end meanwhile.
		if at, err := os.Stat(path); err == nil {
			require.False(t, os.SameFile(at, theirs), "a thread stayed in the namespace")
		}
	}
}

func TestApplyInAPodWithOtherLinksIsAnError(t *testing.T) {
	pod := networktest.Namespace(t)
	networktest.IP(t, pod, "link add tap0 type veth peer name other")
	err := Apply(t.Context(), pod, network.Config{Links: []network.LinkConfig{
		{Interface: "default", Name: "tap0", Kind: network.Tap},
		{Name: "eth0", Kind: network.Uplink, Index: 99},
	}})
	require.ErrorContains(t, err, `bind interface default: link tap0: there is one already, of the kind "veth" and not "tun"`)
	require.ErrorContains(t, err, "link eth0: there is none with the index 99")
}

func TestATapDeviceOfAnotherOwnerIsReplaced(t *testing.T) {
	pod, _ := networktest.Pod(t)
	cfg := plan(t, pod, networktest.Instance(networktest.Masquerade))
	require.NoError(t, Apply(t.Context(), pod, cfg))
	cfg.Links[1].Owner = network.Owner{UID: 1275265131, GID: 1275265131}
	require.NoError(t, Apply(t.Context(), pod, cfg))
	require.Contains(t, string(text(t, pod, cfg)), "owner 1275265131:1275265131")
}

func TestATapDeviceInUseIsLeftAlone(t *testing.T) {
	for name, flags := range map[string]uint16{
		"by a card that knows offloads": unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR,
		"by one that does not":          unix.IFF_TAP | unix.IFF_NO_PI,
	} {
		t.Run(name, func(t *testing.T) {
			pod, _ := networktest.Pod(t)
			cfg := plan(t, pod, networktest.Instance(networktest.Masquerade))
			require.NoError(t, Apply(t.Context(), pod, cfg))
			before, err := Observe(t.Context(), pod)
			require.NoError(t, err)
			networktest.In(t, pod, func() {
				fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
				require.NoError(t, err)
				t.Cleanup(func() { unix.Close(fd) })
				req, err := unix.NewIfreq("tap0")
				require.NoError(t, err)
				req.SetUint16(flags)
				require.NoError(t, unix.IoctlIfreq(fd, unix.TUNSETIFF, req))
			})
			require.NoError(t, Apply(t.Context(), pod, cfg))
			after, err := Observe(t.Context(), pod)
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
}
