package device

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// victim is a file of the node outside the folders of the handler, which must stay.
func victim(t *testing.T) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "victim")
	require.NoError(t, os.WriteFile(p, []byte("of the node"), 0o600))
	t.Cleanup(func() {
		b, err := os.ReadFile(p)
		require.NoError(t, err)
		require.Equal(t, "of the node", string(b))
		info, err := os.Stat(p)
		require.NoError(t, err)
		require.EqualValues(t, 0o600, info.Mode())
	})
	return p
}

// puts are what is put in the place of a file of the handler.
var puts = map[string]func(t *testing.T, path string) error{
	"nothing":           func(*testing.T, string) error { return nil },
	"a link to a file":  func(t *testing.T, p string) error { return os.Symlink(victim(t), p) },
	"a link to nowhere": func(t *testing.T, p string) error { return os.Symlink(filepath.Join(t.TempDir(), "new"), p) },
	"a link to itself":  func(_ *testing.T, p string) error { return os.Symlink(p, p) },
	"a hard link":       func(t *testing.T, p string) error { return os.Link(victim(t), p) },
	"an empty folder":   func(_ *testing.T, p string) error { return os.Mkdir(p, 0o755) },
	"a pipe":            func(_ *testing.T, p string) error { return unix.Mkfifo(p, 0o644) },
	"an empty file":     func(_ *testing.T, p string) error { return write(p, nil, 0o644) },
	"other content": func(_ *testing.T, p string) error {
		return write(p, []byte(`{"cdiVersion":"0.6.0","kind":"devices.kubevirt.io/vm","devices":[{"name":"tun","containerEdits":{"mounts":[{"hostPath":"/","containerPath":"/host"}]}}]}`), 0o644)
	},
	"a file of another mode": func(t *testing.T, p string) error {
		spec, err := CDI([]Device{tun})
		require.NoError(t, err)
		return write(p, spec, 0o666)
	},
}

// write makes a file that is not there yet.
func write(path string, content []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Chmod(mode), f.Close())
}

// replace puts something in the place of a file that the handler may make again at
// any time.
func replace(t *testing.T, path string, put func(t *testing.T, path string) error) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		err := os.Remove(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) && time.Now().Before(end) {
			continue // it is another kind of file now
		}
		if !errors.Is(err, os.ErrNotExist) {
			require.NoError(t, err)
		}
		err = put(t, path)
		if !errors.Is(err, os.ErrExist) && !errors.Is(err, unix.EADDRINUSE) {
			require.NoError(t, err)
			return
		}
	}
}

func TestAttackTheCDISpecificationIsWrittenAgainWhateverIsPutInItsPlace(t *testing.T) {
	t.Parallel()
	spec, err := CDI([]Device{tun})
	require.NoError(t, err)
	for name, put := range puts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, cdi := folder(t), t.TempDir()
			path := filepath.Join(cdi, cdiFile)
			replace(t, path, put)
			startKubelet(t, dir)
			_, stop := start(t, Config{Devices: []Device{tun}, PluginDir: dir, CDIDir: cdi})
			defer stop()
			written := func() bool { return cdiIsWritten(cdi, spec) }
			require.Eventually(t, written, time.Minute, time.Millisecond, "at the start")

			replace(t, path, put)
			require.Eventually(t, written, time.Minute, time.Millisecond, "while the handler runs")
			require.Eventually(t, func() bool { // a write may be under way for an earlier check
				left, err := os.ReadDir(cdi)
				return err == nil && len(left) == 1
			}, time.Minute, time.Millisecond, "nothing else is left")
		})
	}
}

func TestAttackAFolderInPlaceOfTheCDISpecificationIsKeptUntilItIsEmpty(t *testing.T) {
	t.Parallel()
	spec, err := CDI([]Device{tun})
	require.NoError(t, err)
	dir, cdi := folder(t), t.TempDir()
	file := filepath.Join(cdi, cdiFile, "file")
	require.NoError(t, os.Mkdir(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	k := startKubelet(t, dir)
	_, stop := start(t, Config{Devices: []Device{tun}, PluginDir: dir, CDIDir: cdi})
	defer stop()
	k.next()
	require.FileExists(t, file)
	require.NoError(t, os.Remove(file))
	require.Eventually(t, func() bool { return cdiIsWritten(cdi, spec) }, time.Minute, time.Millisecond)
	left, err := os.ReadDir(cdi)
	require.NoError(t, err)
	require.Len(t, left, 1, "no attempt left a file")
}

func TestAttackTheRemovalOfTheCDISpecificationRemovesNothingElse(t *testing.T) {
	t.Parallel()
	cdi := t.TempDir()
	require.NoError(t, os.Symlink(victim(t), filepath.Join(cdi, cdiFile)))
	others := []string{"devices.kubevirt.io-vm.json-of-another", "devices.kubevirt.io-vm.yaml", "vendor.json"}
	for _, name := range others {
		require.NoError(t, os.WriteFile(filepath.Join(cdi, name), nil, 0o644))
	}
	require.NoError(t, os.WriteFile(filepath.Join(cdi, cdiFile+".123"), nil, 0o644))
	require.NoError(t, removeCDI(cdi))
	require.NoError(t, removeCDI(cdi), "again")
	left, err := os.ReadDir(cdi)
	require.NoError(t, err)
	var names []string
	for _, f := range left {
		names = append(names, f.Name())
	}
	require.Equal(t, others, names)
}

func TestAttackADeviceIsOfferedWhateverIsPutInPlaceOfItsSocket(t *testing.T) {
	t.Parallel()
	stranger := func(t *testing.T, p string) error {
		l, err := net.Listen("unix", p)
		if err != nil {
			return err
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		t.Cleanup(func() { _ = l.Close() })
		return nil
	}
	for name, put := range puts {
		t.Run(name, func(t *testing.T) { t.Parallel(); offered(t, put) })
	}
	t.Run("a socket on which another process listens", func(t *testing.T) { t.Parallel(); offered(t, stranger) })
}

// offered checks that the kubelet gets the device of the handler before and after put
// puts something in the place of its socket.
func offered(t *testing.T, put func(t *testing.T, path string) error) {
	dir := folder(t)
	k := startKubelet(t, dir)
	socket := filepath.Join(dir, tun.socket())
	replace(t, socket, put)
	_, stop := start(t, Config{Devices: []Device{tun}, PluginDir: dir, CDIDir: t.TempDir()})
	defer stop()
	for range 2 {
		r := k.next()
		var a *api.AllocateResponse
		require.Eventually(t, func() bool {
			select {
			case r = <-k.registered: // the one before may be that of a socket that is gone
			default:
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			var err error
			a, err = k.plugin(r).Allocate(ctx, &api.AllocateRequest{ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: []string{"tun0"}}}})
			return err == nil
		}, time.Minute, 10*time.Millisecond)
		require.Equal(t, "devices.kubevirt.io/vm=tun", a.ContainerResponses[0].CdiDevices[0].Name)
		replace(t, socket, put)
	}
}

func TestAttackNoDeviceIsRegisteredAtWhatIsNotTheKubeletsSocket(t *testing.T) {
	t.Parallel()
	elsewhere, dir := folder(t), folder(t)
	k := startKubelet(t, elsewhere)
	require.NoError(t, os.Symlink(filepath.Join(elsewhere, "kubelet.sock"), filepath.Join(dir, "kubelet.sock")))
	p, stop := start(t, Config{Devices: []Device{tun}, PluginDir: dir, CDIDir: t.TempDir()})
	defer stop()
	select {
	case <-k.registered:
		require.Fail(t, "registered at the target of a link")
	case <-time.After(500 * time.Millisecond):
	}
	require.False(t, p.Registered(Tun))
	startKubelet(t, dir).next()
}
