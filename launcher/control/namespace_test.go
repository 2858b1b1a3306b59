package control

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestAClientGetsTheNetworkNamespaceOfTheServer(t *testing.T) {
	_, c := serve(t, ServerConfig{})
	n, err := c.Namespace(t.Context())
	require.NoError(t, err)
	defer n.Close()
	require.EqualValues(t, os.Getuid(), n.UID)
	require.EqualValues(t, os.Getgid(), n.GID)
	requireOwn(t, n.File)
	require.NotNil(t, n.Launcher, "Linux 6.5 and newer")
	info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(int(n.Launcher.Fd())))
	require.NoError(t, err)
	require.Contains(t, string(info), "Pid:\t"+strconv.Itoa(os.Getpid())+"\n")
}

// requireOwn requires that f is the network namespace of this process.
func requireOwn(t *testing.T, f *os.File) {
	t.Helper()
	got, err := f.Stat()
	require.NoError(t, err)
	want, err := os.Stat("/proc/self/ns/net")
	require.NoError(t, err)
	require.True(t, os.SameFile(want, got))
}

func TestAClientRefusesADescriptorThatIsNoNetworkNamespace(t *testing.T) {
	for _, file := range []string{"/proc/self/ns/uts", "/dev/null"} {
		_, c := serve(t, ServerConfig{NetworkNamespace: file})
		_, err := c.Namespace(t.Context())
		require.ErrorContains(t, err, "no network namespace")
	}
}

func TestAServerWithoutANetworkNamespaceRefuses(t *testing.T) {
	_, c := serve(t, ServerConfig{NetworkNamespace: filepath.Join(t.TempDir(), "nothing")})
	_, err := c.Namespace(t.Context())
	var refusal *Error
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, 503, refusal.Status)
}

func TestAClientTakesNoMoreDescriptorsThanItAskedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		many := unix.UnixRights(0, 0, 0, 0)
		for t.Context().Err() == nil {
			if _, _, err := conn.(*net.UnixConn).WriteMsgUnix([]byte("H"), many, nil); err != nil {
				return
			}
		}
	}()
	_, err = NewClient(dialTo(path)).Namespace(t.Context())
	require.ErrorContains(t, err, "the launcher sent 4 descriptors, not one")
}
