package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi/client"
)

// user is someone with one of Kubernetes' own roles in the namespace, and no other right.
type user struct {
	space
	// kubeconfig is a file with a token of theirs.
	kubeconfig string
	vms        client.VirtualMachines
	vmis       client.VirtualMachineInstances
}

// user makes a user with the role, who is known to the API server when it returns.
func (s space) user(role string) user {
	s.t.Helper()
	s.kubectl("create", "serviceaccount", role)
	s.kubectl("create", "rolebinding", role, "--clusterrole="+role, "--serviceaccount="+s.name+":"+role)
	token, err := world.kube.CoreV1().ServiceAccounts(s.name).CreateToken(s.t.Context(), role, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	cluster := api.NewCluster()
	cluster.Server, cluster.CertificateAuthorityData = world.config.Host, world.config.CAData
	who := api.NewAuthInfo()
	who.Token = token.Status.Token
	in := api.NewContext()
	in.Cluster, in.AuthInfo, in.Namespace = "c", "u", s.name
	config := api.Config{CurrentContext: "x", Clusters: map[string]*api.Cluster{"c": cluster}, AuthInfos: map[string]*api.AuthInfo{"u": who}, Contexts: map[string]*api.Context{"x": in}}
	u := user{space: s, kubeconfig: filepath.Join(s.t.TempDir(), role)}
	require.NoError(s.t, clientcmd.WriteToFile(config, u.kubeconfig))
	cfg, err := clientcmd.BuildConfigFromFlags("", u.kubeconfig)
	require.NoError(s.t, err)
	c, err := client.New(cfg)
	require.NoError(s.t, err)
	u.vms, u.vmis = c.VirtualMachines(s.name), c.VirtualMachineInstances(s.name)
	u.awaitRight(cfg)
	return u
}

// awaitRight waits until the role counts, which the API server takes from a watch.
func (u user) awaitRight(cfg *rest.Config) {
	u.t.Helper()
	kube, err := kubernetes.NewForConfig(cfg)
	require.NoError(u.t, err)
	eventually(u.t, soon, func() error {
		r, err := kube.AuthorizationV1().SelfSubjectAccessReviews().Create(u.t.Context(), &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: u.name, Verb: "list", Group: "kubevirt.io", Resource: "virtualmachines"},
		}}, metav1.CreateOptions{})
		if err == nil && !r.Status.Allowed {
			err = errors.New("the role does not count yet")
		}
		return err
	})
}

// terminal is a console that a user has open.
type terminal struct {
	u      user
	stream net.Conn
	ended  chan struct{}

	mu    sync.Mutex
	shown string
	err   error
}

// patiently makes a call again while the answer is that it cannot be done now. On a busy host a
// node or a launcher may take longer to answer than virt-controller waits.
func patiently(t *testing.T, call func() error) {
	t.Helper()
	eventually(t, soon, func() error {
		err := call()
		if !apierrors.IsServiceUnavailable(err) {
			require.NoError(t, err)
		}
		return err
	})
}

// doneOnce is patiently for a call that is a conflict when it was done, though its answer was late.
func doneOnce(t *testing.T, call func() error) {
	t.Helper()
	tries := 0
	patiently(t, func() error {
		err := call()
		if tries++; tries > 1 && apierrors.IsConflict(err) {
			return nil
		}
		return err
	})
}

// console opens the console. The stream is open when it returns.
func (u user) console(name string) *terminal {
	u.t.Helper()
	var stream net.Conn
	patiently(u.t, func() (err error) {
		stream, err = u.vmis.Console(u.t.Context(), name)
		return err
	})
	return u.watch(stream)
}

// watch reads the stream until it ends.
func (u user) watch(stream net.Conn) *terminal {
	c := &terminal{u: u, stream: stream, ended: make(chan struct{})}
	u.t.Cleanup(func() {
		_ = stream.Close() // it may have ended
		if u.t.Failed() {
			u.t.Logf("the stream has sent:\n%q", c.screen())
		}
	})
	go func() {
		defer close(c.ended)
		b := make([]byte, 4096)
		for {
			n, err := stream.Read(b)
			c.mu.Lock()
			c.shown += string(b[:n])
			c.err = err
			c.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return c
}

func (c *terminal) screen() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown
}

// shows waits for the text, and types the keys again and again until then, unless they
// are empty.
func (c *terminal) shows(text, keys string) {
	c.u.t.Helper()
	again := time.Now()
	eventually(c.u.t, boots, func() error {
		if strings.Contains(c.screen(), text) {
			return nil
		}
		if keys != "" && !time.Now().Before(again) {
			c.types(keys)
			again = time.Now().Add(5 * time.Second)
		}
		return fmt.Errorf("the console does not show %q", text)
	})
}

func (c *terminal) types(keys string) {
	c.u.t.Helper()
	_, err := c.stream.Write([]byte(keys))
	require.NoError(c.u.t, err)
}

// isCut waits until the stream has ended, with an error that clients of KubeVirt look for.
func (c *terminal) isCut() {
	c.u.t.Helper()
	select {
	case <-c.ended:
	case <-time.After(long): // a migration ends it, which takes its time
		require.FailNow(c.u.t, "the stream has not ended")
	}
	require.ErrorIs(c.u.t, c.err, io.ErrUnexpectedEOF)
	require.ErrorContains(c.u.t, c.err, "EOF")
}

// worksOrIsCut waits until the shell of the guest answers or the stream has ended. One that
// does neither hangs.
func (c *terminal) worksOrIsCut() {
	c.u.t.Helper()
	_, _ = c.stream.Write([]byte("echo still-$((20+1))\r")) // it may have ended
	eventually(c.u.t, soon, func() error {
		select {
		case <-c.ended:
			return nil
		default:
		}
		if !strings.Contains(c.screen(), "still-21") {
			return errors.New("the console does not answer, and has not ended")
		}
		return nil
	})
}

// screen opens the screen and reads what an RFB server sends first.
func (u user) screen(name string, opts client.VNCOptions) net.Conn {
	u.t.Helper()
	var stream net.Conn
	patiently(u.t, func() (err error) {
		stream, err = u.vmis.VNC(u.t.Context(), name, opts)
		return err
	})
	require.NoError(u.t, stream.SetReadDeadline(time.Now().Add(soon)))
	version := make([]byte, 12)
	_, err := io.ReadFull(stream, version)
	require.NoError(u.t, err)
	require.Equal(u.t, "RFB 003.008\n", string(version))
	require.NoError(u.t, stream.SetReadDeadline(time.Time{}))
	return stream
}

// size begins a session of RFB 3.8 without a password (RFC 6143, 7.1 to 7.3), and returns
// the size of the screen.
func (u user) size(stream net.Conn) image.Point {
	u.t.Helper()
	require.NoError(u.t, stream.SetDeadline(time.Now().Add(soon)))
	_, err := stream.Write([]byte("RFB 003.008\n"))
	require.NoError(u.t, err)
	types := make([]byte, 1)
	_, err = io.ReadFull(stream, types)
	require.NoError(u.t, err)
	types = make([]byte, types[0])
	_, err = io.ReadFull(stream, types)
	require.NoError(u.t, err)
	require.Contains(u.t, string(types), "\x01", "no security")
	_, err = stream.Write([]byte{1})
	require.NoError(u.t, err)
	result := make([]byte, 4)
	_, err = io.ReadFull(stream, result)
	require.NoError(u.t, err)
	require.Zero(u.t, bytes.Trim(result, "\x00"))
	_, err = stream.Write([]byte{1}) // shared
	require.NoError(u.t, err)
	b := make([]byte, 4)
	_, err = io.ReadFull(stream, b)
	require.NoError(u.t, err)
	return image.Pt(int(b[0])<<8|int(b[1]), int(b[2])<<8|int(b[3]))
}

// screenshot is what the guest shows.
func (u user) screenshot(ctx context.Context, name string) (image.Image, error) {
	b, err := u.vmis.Screenshot(ctx, name)
	if err != nil {
		return nil, err
	}
	return png.Decode(bytes.NewReader(b))
}

// lit is the share of the picture's points that are not dark.
func lit(m image.Image) float64 {
	n := 0
	for p := range points(m) {
		if bright(m, p) {
			n++
		}
	}
	return float64(n) / float64(m.Bounds().Dx()*m.Bounds().Dy())
}

// alike is the share of the lit points of want that are lit in got too. Pictures of other
// sizes have nothing alike.
func alike(got, want image.Image) float64 {
	if got.Bounds() != want.Bounds() {
		return 0
	}
	same, all := 0, 0
	for p := range points(want) {
		if bright(want, p) {
			all++
			if bright(got, p) {
				same++
			}
		}
	}
	return float64(same) / float64(max(all, 1))
}

func points(m image.Image) func(func(image.Point) bool) {
	return func(yield func(image.Point) bool) {
		b := m.Bounds()
		for y := b.Min.Y; y < b.Max.Y; y++ {
			for x := b.Min.X; x < b.Max.X; x++ {
				if !yield(image.Pt(x, y)) {
					return
				}
			}
		}
	}
}

func bright(m image.Image, p image.Point) bool {
	r, g, b, _ := m.At(p.X, p.Y).RGBA()
	return r+g+b > 3*0x5000
}
