package subresource

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
)

// errStreamed is that the answer has been sent.
var errStreamed = errors.New("the answer is sent")

// errCut ends a connection in the middle of an answer.
var errCut = http.ErrAbortHandler

// Sizes, in bytes: of the buffers of a stream, of a datagram, and of the largest message
// of a client, of which no more than a buffer is held.
const (
	bufferSize     = 16 << 10
	mostOfDatagram = 64 << 10
	mostOfFrames   = 1 << 20
)

var upgrader = websocket.Upgrader{
	HandshakeTimeout: mostToCall,
	WriteBufferPool:  new(sync.Pool),
	WriteBufferSize:  4 << 10,
	Subprotocols:     []string{vmi.StreamProtocol},
	// The aggregator is the only client; the origin is that of the user's page.
	CheckOrigin: func(*http.Request) bool { return true },
	Error: func(w http.ResponseWriter, _ *http.Request, _ int, reason error) {
		fail(w, bad("%v", reason))
	},
}

func key(v *vmi.VirtualMachineInstance) types.NamespacedName {
	return types.NamespacedName{Namespace: v.Namespace, Name: v.Name}
}

func (s *Server) console(ctx context.Context, r *request) (any, error) {
	v, err := s.vmi(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case v.Spec.Domain.Devices.AutoattachSerialConsole != nil && !*v.Spec.Domain.Devices.AutoattachSerialConsole:
		return nil, bad("No serial consoles are present.")
	case v.Status.Phase == vmi.Failed:
		return nil, conflict(ofVMI, v.Name, "VMI is in failed status")
	case v.Status.Phase != vmi.Running:
		return nil, bad("VMI is not running")
	}
	return nil, s.join(ctx, r, v, func(ctx context.Context) (net.Conn, error) {
		c, err := s.Nodes.Stream(ctx, v, "console")
		if err != nil {
			return nil, refused(v, "console", err)
		}
		return c, nil
	}, cutsAtEnd)
}

// withScreen reads the VMI, which must have a screen.
func (s *Server) withScreen(ctx context.Context, r *request) (*vmi.VirtualMachineInstance, error) {
	v, err := s.vmi(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case v.Spec.Domain.Devices.AutoattachGraphicsDevice != nil && !*v.Spec.Domain.Devices.AutoattachGraphicsDevice:
		return nil, bad("No graphics devices are present.")
	case v.Status.Phase != vmi.Running:
		return nil, bad("VMI is not running")
	}
	return v, nil
}

func (s *Server) vnc(ctx context.Context, r *request) (any, error) {
	v, err := s.withScreen(ctx, r)
	if err != nil {
		return nil, err
	}
	name := "screen"
	if keep, err := strconv.ParseBool(r.URL.Query().Get("preserveSession")); err == nil && keep {
		name = "screen-if-free"
	}
	return nil, s.join(ctx, r, v, func(ctx context.Context) (net.Conn, error) {
		c, err := s.Nodes.Stream(ctx, v, name)
		if err != nil {
			return nil, refused(v, "vnc", err)
		}
		return c, nil
	}, cutsAtEnd)
}

func (s *Server) forward(ctx context.Context, r *request) (any, error) {
	network := "tcp"
	if len(r.rest) == 2 {
		network = r.rest[1]
	}
	if len(r.rest) < 1 || len(r.rest) > 2 || network != "tcp" && network != "udp" {
		return nil, bad("the path of portforward ends with a port, and tcp or udp if it is not tcp")
	}
	port, err := strconv.ParseUint(r.rest[0], 10, 16)
	if err != nil || port == 0 {
		return nil, bad("port %q is none from 1 to 65535", r.rest[0])
	}
	v, err := s.evacuated(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case v.Status.Condition(vmi.ConditionPaused) != nil:
		return nil, conflict(ofVMI, v.Name, "VMI is paused")
	}
	address, err := s.address(ctx, v)
	if err != nil {
		return nil, err
	}
	address = net.JoinHostPort(address, strconv.FormatUint(port, 10))
	return nil, s.join(ctx, r, v, func(ctx context.Context) (net.Conn, error) {
		c, err := s.Dial(ctx, network, address)
		if err != nil {
			return nil, unavailable("dialing VM: %v", err)
		}
		return c, nil
	}, kind{datagrams: network == "udp", ends: true})
}

// address is the address that Kubernetes reports of the pod that the VMI runs in. It is
// none of the node: on its network, a user would reach the node's own services.
func (s *Server) address(ctx context.Context, v *vmi.VirtualMachineInstance) (string, error) {
	pods, err := s.Kube.CoreV1().Pods(v.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{vmi.CreatedByLabel: string(v.UID)}.String(),
	})
	if err != nil {
		return "", err
	}
	for _, p := range pods.Items {
		switch {
		case !metav1.IsControlledBy(&p, v), p.Status.Phase != corev1.PodRunning, p.Status.PodIP == "", p.Spec.NodeName != v.Status.NodeName:
		case p.Spec.HostNetwork, ofNode(&p):
			return "", conflict(ofVMI, v.Name, "it is on the network of node %s: connect to the node", p.Spec.NodeName)
		default:
			return p.Status.PodIP, nil
		}
	}
	return "", bad("no network interfaces are present: VMI %s has no running pod with an address", v.Name)
}

// ofNode says whether the address of the pod is one of its node, or none that leads to a
// pod.
func ofNode(p *corev1.Pod) bool {
	a, err := netip.ParseAddr(p.Status.PodIP)
	if a = a.Unmap(); err != nil || !a.IsGlobalUnicast() {
		return true
	}
	hosts := []string{p.Status.HostIP}
	for _, h := range p.Status.HostIPs {
		hosts = append(hosts, h.IP)
	}
	return slices.ContainsFunc(hosts, func(h string) bool {
		host, err := netip.ParseAddr(h)
		return err == nil && host.Unmap() == a
	})
}

// kind is how a stream is framed and ended.
type kind struct {
	// datagrams says that each message is one.
	datagrams bool
	// ends says that the client gets a close frame when the other end is closed. Clients
	// of consoles and screens take the end of the connection for the end.
	ends bool
}

var cutsAtEnd kind

// join opens the stream and joins it with a websocket of the client, until one of them
// ends.
func (s *Server) join(ctx context.Context, r *request, v *vmi.VirtualMachineInstance, open func(context.Context) (net.Conn, error), k kind) error {
	if !websocket.IsWebSocketUpgrade(r.Request) {
		return bad("%s is a websocket: send the headers of an upgrade", r.subresource)
	}
	leave, err := s.streams.take(key(v))
	if err != nil {
		return err
	}
	defer leave()
	dial, cancel := context.WithTimeout(ctx, mostToCall)
	far, err := open(dial)
	cancel()
	if err != nil {
		return err
	}
	defer func() { _ = far.Close() }()
	near, err := upgrader.Upgrade(r.w, r.Request, nil)
	if err != nil {
		return errStreamed // upgrader has answered
	}
	defer func() { _ = near.Close() }()
	r.admitted()
	s.pass(near, far, k)
	return errStreamed
}

// pass copies both ways until either end is closed, the client does not answer, or the
// server ends.
func (s *Server) pass(near *websocket.Conn, far net.Conn, k kind) {
	near.SetReadLimit(mostOfFrames)
	alive := func() { _ = near.SetReadDeadline(time.Now().Add(s.Idle)) }
	alive()
	near.SetPongHandler(func(string) error { alive(); return nil })
	var both sync.WaitGroup
	fromClient, fromFar := make(chan struct{}), make(chan struct{})
	both.Go(func() { defer close(fromClient); receive(near, far, k, alive) })
	both.Go(func() { defer close(fromFar); s.send(near, far, k) })
	pings := time.NewTicker(s.Ping)
	defer pings.Stop()
	code, why := 0, ""
	for on := true; on; {
		select {
		case <-fromClient:
			on = false
		case <-fromFar:
			on = false
			if k.ends {
				code = websocket.CloseNormalClosure
			}
		case <-s.ended:
			on = false
			code, why = websocket.CloseGoingAway, "virt-controller ends; connect again"
		case <-pings.C:
			// One that cannot be written ends the stream by the deadline of reading.
			_ = near.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second))
		}
	}
	if code != 0 {
		_ = near.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, why), time.Now().Add(time.Second))
	}
	_ = far.Close()
	_ = near.Close()
	both.Wait()
}

// receive copies what the client sends.
func receive(near *websocket.Conn, far net.Conn, k kind, alive func()) {
	size := bufferSize
	if k.datagrams {
		size = mostOfDatagram
	}
	buffer := make([]byte, size)
	for {
		t, message, err := near.NextReader()
		switch {
		case err != nil:
			return
		case t != websocket.BinaryMessage:
			continue
		case k.datagrams:
			n, err := io.ReadFull(message, buffer)
			if err != io.EOF && err != io.ErrUnexpectedEOF {
				return
			}
			_, _ = far.Write(buffer[:n]) // a datagram may be lost
		default:
			// Without its other methods, the connection copies through the buffer.
			if _, err := io.CopyBuffer(struct{ io.Writer }{far}, message, buffer); err != nil {
				return
			}
		}
		alive()
	}
}

// send copies what comes from the other end.
func (s *Server) send(near *websocket.Conn, far net.Conn, k kind) {
	size := bufferSize
	if k.datagrams {
		size = mostOfDatagram
	}
	buffer := make([]byte, size)
	for {
		n, err := far.Read(buffer)
		if n > 0 {
			_ = near.SetWriteDeadline(time.Now().Add(s.Idle))
			if near.WriteMessage(websocket.BinaryMessage, buffer[:n]) != nil {
				return
			}
		}
		if err != nil && (!k.datagrams || !errors.Is(err, syscall.ECONNREFUSED)) {
			return
		}
	}
}
