package subresource

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/websocket"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// errStreamed is that the answer has been sent.
var errStreamed = errors.New("the answer is sent")

// errCut ends a connection in the middle of an answer.
var errCut = http.ErrAbortHandler

func key(v *vmi.VirtualMachineInstance) types.NamespacedName {
	return types.NamespacedName{Namespace: v.Namespace, Name: v.Name}
}

func (s *Server) console(ctx context.Context, r *request) (any, error) {
	v, err := s.vmi(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case v.Spec.Domain.Devices.AutoattachSerialConsole != nil && !*v.Spec.Domain.Devices.AutoattachSerialConsole:
		// Clients expect just these words. They ask again for minutes after a 400.
		return nil, status(http.StatusConflict, metav1.StatusReasonConflict, "No serial consoles are present.")
	case v.Status.Phase == vmi.Failed:
		return nil, conflict(ofVMI, v.Name, "VMI is in failed status")
	case v.Status.Phase != vmi.Running:
		return nil, bad("VMI is not running")
	}
	return nil, s.join(ctx, r, v, func(ctx context.Context) (net.Conn, error) {
		c, err := s.Nodes.Stream(ctx, v, protocol.StreamConsole)
		if err != nil {
			return nil, refused(v, string(protocol.StreamConsole), err)
		}
		return c, nil
	}, JoinOptions{Cuts: true})
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
	stream := protocol.StreamScreen
	if keep, err := strconv.ParseBool(r.URL.Query().Get("preserveSession")); err == nil && keep {
		stream = protocol.StreamScreenIfFree
	}
	return nil, s.join(ctx, r, v, func(ctx context.Context) (net.Conn, error) {
		c, err := s.Nodes.Stream(ctx, v, stream)
		if err != nil {
			return nil, refused(v, "vnc", err)
		}
		return c, nil
	}, JoinOptions{Cuts: true})
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
	}, JoinOptions{Datagrams: network == "udp"})
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

// join opens the stream and joins it with a websocket of the client.
func (s *Server) join(ctx context.Context, r *request, v *vmi.VirtualMachineInstance, open func(context.Context) (net.Conn, error), o JoinOptions) error {
	if !websocket.Asked(r.Request) {
		return bad("%s is a websocket: send the headers of an upgrade", r.subresource)
	}
	leave, err := s.streams.take(key(v))
	if err != nil {
		return err
	}
	dial, cancel := context.WithTimeout(ctx, mostToCall)
	far, err := open(dial)
	cancel()
	if err != nil {
		leave()
		return err
	}
	o.Ping, o.Idle, o.Ended, o.Closed = s.Ping, s.Idle, s.ended, leave
	switch err := Join(r.w, r.Request, far, o); {
	case errors.Is(err, ErrNoWebsocket):
		return bad("%v", err)
	case err != nil:
		return errStreamed // the client is gone
	}
	r.admitted()
	return errStreamed
}
