package control

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/nsfs"
	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/protocol"
)

// The path and the upgrade of the namespace in the release before.
const (
	olderNamespacePath  = "/v1/network-namespace"
	olderNamespaceToken = "network-namespace"
)

// Namespace is the network namespace of a launcher's pod. Its owner closes it.
type Namespace struct {
	// File is the open namespace.
	File *os.File
	// Launcher is the process that listens at the launcher's socket, as a descriptor. Nil:
	// the kernel gives none, as before Linux 6.5, or the process has ended.
	Launcher *os.File
	// UID and GID are those of the launcher as the kernel gives them: in the
	// user namespace of the process that asked.
	UID, GID uint32
}

// Close closes the namespace.
func (n *Namespace) Close() error {
	err := n.File.Close()
	if n.Launcher != nil {
		err = errors.Join(err, n.Launcher.Close())
	}
	return err
}

// errClosing is the cause of an error about a launcher that has sent something whose
// closing waits: a socket may wait for its peer for as long as its maker chose.
var errClosing = errors.New("what the launcher sent before in place of its network namespace is not closed yet")

// Namespace asks for the network namespace of the launcher's pod. What comes is a
// network namespace for certain. Whose it is the caller checks: link.Check refuses
// those that no pod has.
//
// Another descriptor never comes to Go's poller, and is closed by a goroutine of its own,
// of which a Client has one at most.
func (c *Client) Namespace(ctx context.Context) (*Namespace, error) {
	n, err := c.namespace(ctx, protocol.Path{Stream: protocol.StreamNetworkNamespace}.String(), protocol.StreamUpgrade)
	if refusal := (*Error)(nil); errors.As(err, &refusal) && refusal.Status == http.StatusNotFound {
		n, err = c.namespace(ctx, olderNamespacePath, olderNamespaceToken)
	}
	if err != nil {
		return nil, fmt.Errorf("get the launcher's network namespace: %w", err)
	}
	return n, nil
}

func (c *Client) namespace(ctx context.Context, path, token string) (*Namespace, error) {
	select {
	case c.closing <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", errClosing, context.Cause(ctx))
	}
	var foreign []int
	defer func() { c.drop(foreign) }()
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	uc, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("a %T passes no descriptors", conn)
	}
	defer c.peer.Bound(ctx, uc)()

	n := &Namespace{}
	if err := n.peer(uc); err != nil {
		return nil, err
	}
	err = c.peer.AskUpgrade(ctx, uc, path, token)
	if err == nil {
		foreign, err = c.receive(uc)
		err = errors.Join(err, context.Cause(ctx))
	}
	if err == nil {
		if err = nsfs.Network(foreign[0]); err != nil {
			err = fmt.Errorf("the launcher sent a descriptor that is no network namespace: %w", err)
		}
	}
	if err != nil {
		if n.Launcher != nil {
			err = errors.Join(err, n.Launcher.Close())
		}
		return nil, err
	}
	n.File, foreign = os.NewFile(uintptr(foreign[0]), "network namespace"), nil
	return n, nil
}

// drop closes descriptors that are used for nothing, and then lets the next come.
func (c *Client) drop(foreign []int) {
	if len(foreign) == 0 {
		<-c.closing
		return
	}
	go func() {
		for _, fd := range foreign {
			_ = unix.Close(fd)
		}
		<-c.closing
	}()
}

// peer notes who the other end of a connection is.
func (n *Namespace) peer(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var sysErr error
	err = raw.Control(func(fd uintptr) {
		var cred *unix.Ucred
		if cred, sysErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); sysErr != nil {
			return
		}
		n.UID, n.GID = cred.Uid, cred.Gid
		if process, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD); err == nil {
			n.Launcher = os.NewFile(uintptr(process), "launcher")
		}
	})
	return errors.Join(err, sysErr)
}

// receive reads the response to a request for the namespace and the one descriptor that
// came with it. With an error there may be descriptors too, which are to be closed: those
// that came without a complete head, too many, or with a refusal.
func (c *Client) receive(from *net.UnixConn) (foreign []int, err error) {
	var head []byte
	buf, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(4*4))
	for !bytes.Contains(head, []byte("\r\n\r\n")) && len(head) < transport.MaxHead {
		n, oobn, _, _, err := from.ReadMsgUnix(buf, oob)
		got, rightsErr := rights(oob[:oobn])
		foreign = append(foreign, got...)
		err = errors.Join(err, rightsErr)
		if err == nil && len(foreign) > 1 {
			// More may come with every byte, until there is no room for any.
			err = fmt.Errorf("the launcher sent %d descriptors, not one", len(foreign))
		}
		if err != nil {
			return foreign, err
		}
		if n == 0 {
			break
		}
		head = append(head, buf[:n]...)
	}
	err = c.peer.Granted(bufio.NewReader(bytes.NewReader(head)))
	if err == nil && len(foreign) == 0 {
		err = errors.New("the launcher sent no descriptor")
	}
	return foreign, err
}

// rights are the descriptors in control messages, also in those before one that is
// malformed.
func rights(oob []byte) (all []int, err error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	for _, m := range messages {
		if fds, notThese := unix.ParseUnixRights(&m); notThese == nil {
			all = append(all, fds...)
		}
	}
	return all, err
}

// getOlderNamespace answers a handler of the release before.
func (s *Server) getOlderNamespace(w http.ResponseWriter, r *http.Request) {
	s.sendNamespace(w, r, olderNamespaceToken)
}

// sendNamespace grants the upgrade and sends the descriptor of the network
// namespace with it. Both go in one message: the kernel gives the descriptor to
// the reader of the first byte, and a reader that does not ask for it loses it.
func (s *Server) sendNamespace(w http.ResponseWriter, r *http.Request, token string) {
	if err := transport.Asked(r, token); err != nil {
		s.serving.Refuse(w, err)
		return
	}
	f, err := os.Open(s.config.NetworkNamespace)
	if err != nil {
		s.serving.Refuse(w, err)
		return
	}
	defer f.Close()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.serving.Refuse(w, err)
		return
	}
	defer conn.Close()
	uc, ok := conn.(*net.UnixConn)
	if !ok {
		return
	}
	if _, _, err := uc.WriteMsgUnix(transport.Granted(token), unix.UnixRights(int(f.Fd())), nil); err != nil {
		s.config.Logger.Debug("cannot send the network namespace", "err", err)
	}
}
