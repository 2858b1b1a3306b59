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
	"time"

	"golang.org/x/sys/unix"
)

// upgrade names what a connection becomes when the namespace is asked for.
const upgrade = "network-namespace"

// switching is the head of the response that the descriptor travels with. It
// goes out in one message: the kernel hands the descriptor to whoever reads the
// first byte, and a reader that does not ask for it loses it.
const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + upgrade + "\r\n\r\n"

// Namespace is the network namespace of a launcher's pod. Whoever has it
// closes it.
type Namespace struct {
	// File is the open namespace.
	File *os.File
	// UID and GID are those of the launcher as the kernel tells them: in the
	// user namespace of the process that asked.
	UID, GID uint32
}

// Close gives up the namespace.
func (n *Namespace) Close() error { return n.File.Close() }

// Namespace asks for the network namespace of the launcher's pod. What comes is
// a network namespace for certain; that the launcher may name no other than its
// own follows from its having no other to open.
func (c *Client) Namespace(ctx context.Context) (*Namespace, error) {
	n, err := c.namespace(ctx)
	if err != nil {
		return nil, fmt.Errorf("get the launcher's network namespace: %w", err)
	}
	return n, nil
}

func (c *Client) namespace(ctx context.Context) (*Namespace, error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	uc, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("a %T passes no descriptors", conn)
	}
	_ = uc.SetDeadline(time.Now().Add(10 * time.Second)) // fails on closed connections only, and so does what follows
	defer context.AfterFunc(ctx, func() { _ = uc.SetDeadline(time.Unix(1, 0)) })()

	peer, err := peerOf(uc)
	if err != nil {
		return nil, err
	}
	request := "GET " + namespacePath + " HTTP/1.1\r\nHost: launcher\r\nConnection: Upgrade\r\nUpgrade: " + upgrade + "\r\n\r\n"
	if _, err := uc.Write([]byte(request)); err != nil {
		return nil, err
	}
	f, err := receive(uc)
	if err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	if kind, err := unix.IoctlRetInt(int(f.Fd()), unix.NS_GET_NSTYPE); err != nil || kind != unix.CLONE_NEWNET {
		return nil, errors.Join(errors.New("the launcher sent a descriptor that is no network namespace"), err, f.Close())
	}
	return &Namespace{File: f, UID: peer.Uid, GID: peer.Gid}, nil
}

// peerOf says who is at the other end of a connection.
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
	for !bytes.Contains(head, []byte("\r\n\r\n")) && len(head) < 64<<10 {
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
		return err
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

// getNamespace hands out the descriptor of the network namespace.
func (s *Server) getNamespace(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != upgrade {
		s.refuse(w, http.StatusUpgradeRequired, ReasonMalformed, errors.New("ask for the upgrade "+upgrade))
		return
	}
	f, err := os.Open(s.config.NetworkNamespace)
	if err != nil {
		s.refuse(w, http.StatusServiceUnavailable, ReasonUnavailable, err)
		return
	}
	defer f.Close()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.refuse(w, http.StatusServiceUnavailable, ReasonUnavailable, err)
		return
	}
	defer conn.Close()
	uc, ok := conn.(*net.UnixConn)
	if !ok {
		return
	}
	if _, _, err := uc.WriteMsgUnix([]byte(switching), unix.UnixRights(int(f.Fd())), nil); err != nil {
		s.config.Logger.Debug("cannot hand out the network namespace", "err", err)
	}
}
