package stream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// handlerLabels select the pods of virt-handler.
const handlerLabels = "kubevirt.io=virt-handler"

// DialerConfig is what a [Dialer] needs.
type DialerConfig struct {
	// Nodes reads nodes. Required.
	Nodes corev1client.NodeInterface
	// Handlers lists the pods of the namespace that Podvisor is installed in. Required.
	Handlers corev1client.PodInterface
	// Token returns a token for an audience: [Tokens.Token]. Required.
	Token func(ctx context.Context, audience string) (string, error)
	// Refused is called with a token that a handler refuses, before Token is called again,
	// once: [Tokens.Forget]. Nil: the refusal is the answer.
	Refused func(audience, token string)
	// Port is the one that handlers listen on. 0: 8186.
	Port int
	// Logger takes a line for each stream that cannot be opened. Nil: nothing is logged.
	Logger *slog.Logger
}

// Dialer opens streams of VMIs, and makes calls to them, at the handlers of their nodes. It
// keeps no connection, so it needs no closing. Its methods may be called from any goroutine.
type Dialer struct {
	config DialerConfig
	pod    types.UID // empty: the one that the VMI runs in
}

// NewDialer makes a Dialer. It asks nothing until a stream or call is asked for.
func NewDialer(c DialerConfig) *Dialer {
	if c.Port == 0 {
		c.Port = 8186
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Dialer{config: c}
}

// Of returns a Dialer that reaches the launcher in the pod with this UID, one of the VMI's
// status.activePods, and not the one in the pod that the VMI runs in.
func (d *Dialer) Of(pod types.UID) *Dialer { return &Dialer{d.config, pod} }

// place is the pod whose launcher is asked, and its node. Empty: there is none.
func (d *Dialer) place(v *vmi.VirtualMachineInstance) (pod types.UID, node string) {
	if d.pod != "" {
		return d.pod, v.Status.ActivePods[d.pod]
	}
	return handler.ActivePod(v), v.Status.NodeName
}

// Stream opens a stream of the VMI, by its namespace, name and UID, in the pod that
// its status.nodeName and status.activePods name. ctx bounds the opening and not the stream, which the caller closes. Every error is a
// [*vmi.Refusal]; what the handler or the launcher refuses has their reason, and what
// does not answer is protocol.ReasonUnavailable.
//
// What arrives is a tenant's: raw bytes, at any rate, until either side ends.
func (d *Dialer) Stream(ctx context.Context, v *vmi.VirtualMachineInstance, stream protocol.Stream) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout+5*time.Second)
	defer cancel()
	var conn net.Conn
	err := d.ask(ctx, v, func(c *transport.Client, to protocol.Target) (err error) {
		conn, err = c.Stream(ctx, protocol.Path{Target: to, Stream: stream})
		return err
	})
	if err != nil {
		return nil, d.failed(v, "open the stream "+string(stream), err)
	}
	return conn, nil
}

// Call makes a call to the VMI's launcher and returns when it is done. Options are sent as
// JSON, and the answer is decoded into what answer points to; nil: there are none. Errors
// are as those of [Dialer.Stream].
func (d *Dialer) Call(ctx context.Context, v *vmi.VirtualMachineInstance, call protocol.Call, options, answer any) error {
	err := d.ask(ctx, v, func(c *transport.Client, to protocol.Target) error {
		return c.Call(ctx, protocol.Path{Target: to, Call: call}, options, answer)
	})
	if err != nil {
		return d.failed(v, string(call), err)
	}
	return nil
}

// ask gives do a client of the handler of the pod's node, and again with a new token if the
// handler does not take the first.
func (d *Dialer) ask(ctx context.Context, v *vmi.VirtualMachineInstance, do func(*transport.Client, protocol.Target) error) error {
	pod, node := d.place(v)
	switch {
	case node == "" && d.pod != "":
		return transport.Refusal(protocol.ReasonNotFound, "pod %s is none of its pods", pod)
	case node == "":
		return transport.Refusal(protocol.ReasonNotFound, "it is on no node: wait until it runs")
	}
	peer, err := d.Handler(ctx, node, "")
	if err != nil {
		return err
	}
	for again := d.config.Refused != nil; ; again = false {
		token, err := d.config.Token(ctx, Audience(node))
		if err != nil {
			return err
		}
		err = do(transport.NewClient(transport.Config{
			Dial: dial(peer), Host: peer.Address, Token: token,
			MaxAnswer: 2 * protocol.MaxAnswer, // the handler writes anew what the launcher answers
			Refused:   refused,
		}), target(v, pod))
		if !again || !errors.As(err, &denied{}) {
			return err
		}
		d.config.Refused(Audience(node), token)
	}
}

// dial connects to the handler.
func dial(to Peer) func(context.Context) (net.Conn, error) {
	d := tls.Dialer{Config: pinned(to.Certificate)}
	return func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", to.Address) }
}

// Handler is the handler of the node, as its Node and its pod say, at its address in the network
// that migrations use. An empty network is that of pods. It is another one when the handler was
// restarted. A node that is gone, or whose handler is not in the network, is a [*vmi.Refusal];
// another error says that the API server does not answer, or that no handler serves on the node
// now.
func (d *Dialer) Handler(ctx context.Context, node, network string) (Peer, error) {
	n, err := d.config.Nodes.Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Peer{}, transport.Refusal(protocol.ReasonNotFound, "its node %s is gone", node)
	}
	if err != nil {
		return Peer{}, err
	}
	hash := n.Annotations[CertificateAnnotation]
	if hash == "" {
		return Peer{}, fmt.Errorf("node %s has no annotation %s, which its virt-handler writes when it serves streams", node, CertificateAnnotation)
	}
	if network != "" {
		a, ok := migrationAddress(n.Annotations[MigrationAddressAnnotation])
		if !ok {
			return Peer{}, transport.Refusal(protocol.ReasonUnavailable,
				"virt-handler of node %s has no address in network %s of spec.configuration.migrations: attach it to the DaemonSet virt-handler as interface %s, or remove the field",
				node, network, MigrationInterface)
		}
		return Peer{Certificate: hash, Address: net.JoinHostPort(a.String(), strconv.Itoa(d.config.Port))}, nil
	}
	pods, err := d.config.Handlers.List(ctx, metav1.ListOptions{
		LabelSelector: handlerLabels, FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return Peer{}, err
	}
	p := newest(pods.Items)
	if p == nil {
		return Peer{}, fmt.Errorf("no virt-handler runs on node %s", node)
	}
	return Peer{Certificate: hash, Address: net.JoinHostPort(p.Status.PodIP, strconv.Itoa(d.config.Port))}, nil
}

// newest is the handler that serves: of several the one that was made last, and of those
// none that ends if there is another. Nil: there is none with an address.
func newest(pods []corev1.Pod) *corev1.Pod {
	var best *corev1.Pod
	for i := range pods {
		p := &pods[i]
		switch {
		case p.Status.PodIP == "" || p.Status.Phase != corev1.PodRunning:
		case best == nil,
			best.DeletionTimestamp != nil && p.DeletionTimestamp == nil,
			(best.DeletionTimestamp == nil) == (p.DeletionTimestamp == nil) && best.CreationTimestamp.Before(&p.CreationTimestamp):
			best = p
		}
	}
	return best
}

// failed is the refusal that an error stands for.
func (d *Dialer) failed(v *vmi.VirtualMachineInstance, what string, err error) error {
	key := v.Namespace + "/" + v.Name
	pod, node := d.place(v)
	d.config.Logger.Debug("refused", "vmi", key, "node", node, "pod", pod, "do", what, "err", err)
	if r := (*vmi.Refusal)(nil); errors.As(err, &r) {
		return r
	}
	return transport.Refusal(protocol.ReasonUnavailable, "%s of VMI %s: virt-handler of node %s: %v", what, key, node, err)
}
