package subresource

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/websocket"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/verb"
)

// errStreamed is that the answer has been sent.
var errStreamed = errors.New("the answer is sent")

// errCut ends a connection in the middle of an answer.
var errCut = http.ErrAbortHandler

// mostToDial is how long a port may take to answer.
const mostToDial = 10 * time.Second

func key(v *vmi.VirtualMachineInstance) types.NamespacedName {
	return types.NamespacedName{Namespace: v.Namespace, Name: v.Name}
}

// open opens the stream and joins it with a websocket of the client.
func (s *Server) open(ctx context.Context, r *request, v *vmi.VirtualMachineInstance, of verb.Stream) error {
	if of.Name != "" {
		return s.join(ctx, r, v, func(ctx context.Context) (net.Conn, error) {
			c, err := s.Guests.Stream(ctx, v, protocol.Stream(of.Name))
			if err != nil {
				return nil, r.verb.Refused(v, err)
			}
			return c, nil
		}, JoinOptions{Cuts: true})
	}
	address, err := s.address(ctx, v)
	if err != nil {
		return err
	}
	address = net.JoinHostPort(address, strconv.Itoa(int(of.Port)))
	return s.join(ctx, r, v, func(ctx context.Context) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, mostToDial)
		defer cancel()
		c, err := s.Dial(ctx, of.Network, address)
		if err != nil {
			return nil, unavailable("dialing VM: %v", err)
		}
		return c, nil
	}, JoinOptions{Datagrams: of.Network == verb.UDP})
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
			return "", apierrors.NewConflict(verb.OfVMI, v.Name, fmt.Errorf("it is on the network of node %s: connect to the node", p.Spec.NodeName))
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

// join opens the far end and joins it with a websocket of the client.
func (s *Server) join(ctx context.Context, r *request, v *vmi.VirtualMachineInstance, open func(context.Context) (net.Conn, error), o JoinOptions) error {
	if !websocket.Asked(r.Request) {
		return r.verb.NoWebsocket()
	}
	leave, err := s.streams.take(key(v))
	if err != nil {
		return err
	}
	far, err := open(ctx)
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
