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
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/carry"
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
	// UID and GID are those of the launcher as the kernel gives them: in the
	// user namespace of the process that asked.
	UID, GID uint32
}

// Close closes the namespace.
func (n *Namespace) Close() error { return n.File.Close() }

// Namespace asks for the network namespace of the launcher's pod. What comes is a
// network namespace for certain. Whose it is the caller checks: link.Check refuses
// those that no pod has.
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
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	uc, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("a %T passes no descriptors", conn)
	}
	defer bound(ctx, uc)()

	peer, err := peerOf(uc)
	if err != nil {
		return nil, err
	}
	if _, err := uc.Write(upgradeRequest(path, token)); err != nil {
		return nil, err
	}
	f, err := receive(uc)
	if err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	// The name is the kernel's. To ask the file itself may have another meaning to a
	// device, and take forever on a file system that a tenant serves.
	if name, err := os.Readlink("/proc/thread-self/fd/" + strconv.Itoa(int(f.Fd()))); err != nil || !strings.HasPrefix(name, "net:[") {
		return nil, errors.Join(errors.New("the launcher sent a descriptor that is no network namespace"), err, f.Close())
	}
	return &Namespace{File: f, UID: peer.Uid, GID: peer.Gid}, nil
}

// peerOf returns the credentials of the other end of a connection.
func peerOf(c *net.UnixConn) (*unix.Ucred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var sysErr error
	err = raw.Control(func(fd uintptr) {
		cred, sysErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return cred, errors.Join(err, sysErr)
}

// receive reads the response to a request for the namespace and the one
// descriptor that came with it.
func receive(c *net.UnixConn) (*os.File, error) {
	var head []byte
	var files []*os.File
	drop := func() {
		for _, f := range files {
			_ = f.Close()
		}
	}
	buf, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(4*4))
	for !bytes.Contains(head, []byte("\r\n\r\n")) && len(head) < maxHead {
		n, oobn, _, _, err := c.ReadMsgUnix(buf, oob)
		got, rightsErr := rights(oob[:oobn])
		files = append(files, got...)
		err = errors.Join(err, rightsErr)
		if err == nil && len(files) > 1 {
			// More may come with every byte, until there is no room for any.
			err = fmt.Errorf("the launcher sent %d descriptors, not one", len(files))
		}
		if err != nil {
			drop()
			return nil, err
		}
		if n == 0 {
			break
		}
		head = append(head, buf[:n]...)
	}
	err := switched(head)
	if err == nil && len(files) == 0 {
		err = errors.New("the launcher sent no descriptor")
	}
	if err != nil {
		drop()
		return nil, err
	}
	return files[0], nil
}

// switched says why a response is not the one that a descriptor comes with.
func switched(response []byte) error {
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(response)), nil)
	if err != nil {
		return limited{err}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return refusal(resp)
	}
	return nil
}

// rights are the descriptors in control messages.
func rights(oob []byte) ([]*os.File, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if errors.Is(err, unix.EINVAL) {
			continue // another kind of message
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "network namespace"))
		}
	}
	return files, nil
}

// getOlderNamespace answers a handler of the release before.
func (s *Server) getOlderNamespace(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != olderNamespaceToken {
		s.refuse(w, http.StatusUpgradeRequired, protocol.ReasonMalformed, errors.New("ask for the upgrade "+olderNamespaceToken))
		return
	}
	s.sendNamespace(w, olderNamespaceToken)
}

// sendNamespace grants the upgrade and sends the descriptor of the network
// namespace with it. Both go in one message: the kernel gives the descriptor to
// the reader of the first byte, and a reader that does not ask for it loses it.
func (s *Server) sendNamespace(w http.ResponseWriter, token string) {
	f, err := os.Open(s.config.NetworkNamespace)
	if err != nil {
		s.refuse(w, http.StatusServiceUnavailable, protocol.ReasonUnavailable, err)
		return
	}
	defer f.Close()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.refuse(w, http.StatusServiceUnavailable, protocol.ReasonUnavailable, err)
		return
	}
	defer conn.Close()
	uc, ok := conn.(*net.UnixConn)
	if !ok {
		return
	}
	if _, _, err := uc.WriteMsgUnix(carry.Granted(token), unix.UnixRights(int(f.Fd())), nil); err != nil {
		s.config.Logger.Debug("cannot send the network namespace", "err", err)
	}
}
