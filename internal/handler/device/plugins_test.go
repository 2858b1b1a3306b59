package device

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/podvisor/podvisor/vmi"
)

// kubelet takes registrations as the kubelet does.
type kubelet struct {
	api.UnimplementedRegistrationServer
	t          *testing.T
	dir        string
	registered chan *api.RegisterRequest
	server     *grpc.Server
	ctx        context.Context // ends with it
	end        func()
}

// startKubelet removes all sockets and listens, as the kubelet
// does when it starts.
func startKubelet(t *testing.T, dir string) *kubelet {
	t.Helper()
	old, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	for _, f := range old {
		require.NoError(t, os.RemoveAll(f))
	}
	k := &kubelet{t: t, dir: dir, registered: make(chan *api.RegisterRequest, 10), server: grpc.NewServer()}
	k.ctx, k.end = context.WithCancel(context.Background())
	api.RegisterRegistrationServer(k.server, k)
	l, err := net.Listen("unix", filepath.Join(dir, "kubelet.sock"))
	require.NoError(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	go func() { _ = k.server.Serve(l) }()
	t.Cleanup(k.die)
	return k
}

func (k *kubelet) Register(_ context.Context, r *api.RegisterRequest) (*api.Empty, error) {
	w, err := k.plugin(r).ListAndWatch(k.ctx, &api.Empty{})
	if err == nil {
		_, err = w.Recv()
	}
	if err != nil {
		return nil, err
	}
	k.registered <- r
	return &api.Empty{}, nil
}

// die ends the kubelet as a kill does: its sockets stay.
func (k *kubelet) die() {
	k.end()
	k.server.Stop()
}

func (k *kubelet) next() *api.RegisterRequest {
	k.t.Helper()
	select {
	case r := <-k.registered:
		return r
	case <-time.After(time.Minute):
		require.Fail(k.t, "nothing was registered")
		return nil
	}
}

func (k *kubelet) plugin(r *api.RegisterRequest) api.DevicePluginClient {
	k.t.Helper()
	c, err := grpc.NewClient("unix://"+filepath.Join(k.dir, r.Endpoint), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(k.t, err)
	k.t.Cleanup(func() { _ = c.Close() })
	return api.NewDevicePluginClient(c)
}

var tun = Device{Name: Tun, Resource: vmi.TunResource, Path: "/dev/net/tun", Major: 10, Minor: 200}

// folder is a folder whose sockets' paths are short enough.
func folder(t *testing.T) string {
	dir, err := os.MkdirTemp("", "dp")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// start runs plugins until the returned function is called.
func start(t *testing.T, c Config) (*Plugins, func()) {
	ctx, cancel := context.WithCancel(t.Context())
	p := New(c)
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	return p, func() {
		cancel()
		require.NoError(t, <-done)
	}
}

func TestTheKubeletGivesADeviceToAPod(t *testing.T) {
	t.Parallel()
	dir, cdi := folder(t), t.TempDir()
	k := startKubelet(t, dir)
	p, stop := start(t, Config{Devices: []Device{tun}, PluginDir: dir, CDIDir: cdi, Count: 3})

	r := k.next()
	require.Equal(t, "v1beta1", r.Version)
	require.Equal(t, "devices.kubevirt.io/tun", r.ResourceName)
	require.Equal(t, "kubevirt-tun.sock", r.Endpoint)
	require.Eventually(t, func() bool { return p.Registered(Tun) }, time.Minute, time.Millisecond)
	require.False(t, p.Registered(KVM), "a device that the node does not have")

	c := k.plugin(r)
	watch, err := c.ListAndWatch(t.Context(), &api.Empty{})
	require.NoError(t, err)
	list, err := watch.Recv()
	require.NoError(t, err)
	var ids []string
	for _, d := range list.Devices {
		require.Equal(t, api.Healthy, d.Health)
		ids = append(ids, d.ID)
	}
	require.Equal(t, []string{"tun0", "tun1", "tun2"}, ids)

	a, err := c.Allocate(t.Context(), &api.AllocateRequest{ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: ids[:1]}}})
	require.NoError(t, err)
	require.Len(t, a.ContainerResponses, 1)
	require.Empty(t, a.ContainerResponses[0].Devices)
	require.Equal(t, "devices.kubevirt.io/vm=tun", a.ContainerResponses[0].CdiDevices[0].Name)
	require.FileExists(t, filepath.Join(cdi, "devices.kubevirt.io-vm.json"))

	stop()
	require.False(t, p.Registered(Tun))
	require.NoFileExists(t, filepath.Join(dir, r.Endpoint), "the socket goes with the plugin")
}

func TestAKubeletThatRestartsGetsARegistration(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	k := startKubelet(t, dir)
	_, stop := start(t, Config{Devices: []Device{tun}, PluginDir: dir, CDIDir: t.TempDir()})
	defer stop()
	k.next()
	k.die()
	for range 3 {
		k = startKubelet(t, dir)
		r := k.next()
		o, err := k.plugin(r).GetDevicePluginOptions(t.Context(), &api.Empty{}, grpc.WaitForReady(true))
		require.NoError(t, err)
		require.False(t, o.PreStartRequired)
		k.die()
	}
}

func TestASocketThatWasRemovedIsMadeAgain(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	k := startKubelet(t, dir)
	_, stop := start(t, Config{Devices: []Device{tun}, PluginDir: dir, CDIDir: t.TempDir()})
	defer stop()
	require.NoError(t, os.Remove(filepath.Join(dir, k.next().Endpoint)))
	k.next()
}

func TestRegistrationWaitsForTheKubelet(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	p, stop := start(t, Config{Devices: []Device{tun}, PluginDir: dir, CDIDir: t.TempDir()})
	defer stop()
	require.False(t, p.Registered(Tun))
	startKubelet(t, dir).next()
}

func TestTheSocketOfAHandlerThatWasKilledIsReplaced(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	k := startKubelet(t, dir)
	left, err := net.Listen("unix", filepath.Join(dir, "kubevirt-tun.sock"))
	require.NoError(t, err)
	left.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, left.Close())
	_, stop := start(t, Config{Devices: []Device{tun}, PluginDir: dir, CDIDir: t.TempDir()})
	defer stop()
	_, err = k.plugin(k.next()).GetDevicePluginOptions(t.Context(), &api.Empty{})
	require.NoError(t, err)
}

func TestADeviceIsOfferedOnlyWhileItShallBe(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	k := startKubelet(t, dir)
	sockets := Device{Name: VhostVSOCK, Resource: vmi.VhostVSOCKResource, Path: "/dev/vhost-vsock", Major: 10, Minor: 241}
	var on atomic.Bool
	p, stop := start(t, Config{Devices: []Device{sockets, tun}, PluginDir: dir, CDIDir: t.TempDir(),
		Offered: func(d Device) bool { return d.Name != VhostVSOCK || on.Load() }})
	defer stop()
	require.Equal(t, vmi.TunResource, k.next().ResourceName)
	require.False(t, p.Registered(VhostVSOCK))
	require.NoFileExists(t, filepath.Join(dir, sockets.socket()))
	for range 2 {
		on.Store(true)
		require.Equal(t, vmi.VhostVSOCKResource, k.next().ResourceName)
		require.Eventually(t, func() bool { return p.Registered(VhostVSOCK) }, time.Minute, time.Millisecond)
		on.Store(false)
		require.Eventually(t, func() bool {
			_, err := os.Lstat(filepath.Join(dir, sockets.socket())) // its removal ends the withdrawal
			return errors.Is(err, os.ErrNotExist)
		}, time.Minute, time.Millisecond)
		require.False(t, p.Registered(VhostVSOCK))
	}
	require.True(t, p.Registered(Tun), "the others go on")
	require.Empty(t, k.registered)
}

func TestAMissingCDIFolderIsAnError(t *testing.T) {
	t.Parallel()
	err := New(Config{PluginDir: t.TempDir(), CDIDir: "/nosuch"}).Run(t.Context())
	require.ErrorContains(t, err, "write the CDI specification")
}

func TestAnUninstallRemovesTheCDISpecificationAndARestartDoesNot(t *testing.T) {
	t.Parallel()
	for _, uninstalled := range []bool{false, true} {
		dir, cdi := folder(t), t.TempDir()
		spec := filepath.Join(cdi, "devices.kubevirt.io-vm.json")
		require.NoError(t, os.WriteFile(spec+".123", nil, 0o600), "what a handler that was killed left")
		require.NoError(t, os.WriteFile(filepath.Join(cdi, "other.json"), nil, 0o600))
		k := startKubelet(t, dir)
		_, stop := start(t, Config{Devices: []Device{tun}, PluginDir: dir, CDIDir: cdi, Uninstalled: func(context.Context) bool { return uninstalled }})
		k.next()
		require.FileExists(t, spec)
		stop()
		left, err := filepath.Glob(filepath.Join(cdi, "*"))
		require.NoError(t, err)
		if uninstalled {
			require.Equal(t, []string{filepath.Join(cdi, "other.json")}, left)
		} else {
			require.Contains(t, left, spec)
		}
	}
}
