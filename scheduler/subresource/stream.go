package subresource

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/podvisor/podvisor/internal/carry"
	"github.com/podvisor/podvisor/internal/vmi/verb"
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

// open opens the stream and joins it with a websocket of the client. A port is opened in the
// VMI's pod by its launcher: no address that a status says is dialed.
func (s *Server) open(ctx context.Context, r *request, v *vmi.VirtualMachineInstance, of verb.Stream) error {
	name, o := protocol.Stream(of.Name), JoinOptions{Cuts: true}
	if of.Name == "" {
		name, o = protocol.PortStream(of.Network, of.Port), JoinOptions{Datagrams: of.Network == verb.UDP}
	}
	return s.join(ctx, r, v, func(ctx context.Context) (net.Conn, error) {
		c, err := s.Guests.Stream(ctx, v, name)
		switch {
		case err != nil && of.Name == "":
			return nil, undialed(r.verb.Refused(v, err), err)
		case err != nil:
			return nil, r.verb.Refused(v, err)
		case o.Datagrams:
			return carry.Datagrams(c), nil
		}
		return c, nil
	}, o)
}

// undialed is the answer for a port that cannot be opened: that of the verb, but for a port
// that nothing answers at, which clients know by these words.
func undialed(answer, err error) error {
	var r *vmi.Refusal
	if errors.As(err, &r) && r.Reason == vmi.RefusedUnavailable {
		return unavailable("dialing VM: %s", r.Message)
	}
	return answer
}

// movedTimeout is how long it is asked whether a guest has moved. So long the client of a stream
// that has ended waits where the API server does not answer, through which it came: it could
// not connect again before.
const movedTimeout = 30 * time.Second

// moved says where the guest of a stream that has ended runs, if that is another node than the
// one that the stream was opened on. A handler ends the streams of a guest that moves when the
// status says where the guest is, so a stream that is opened then works. Empty: it has not moved.
func (s *Server) moved(namespace, name string, uid types.UID, from string) string {
	ctx, cancel := context.WithTimeout(context.Background(), movedTimeout)
	defer cancel()
	var v *vmi.VirtualMachineInstance
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		var err error
		v, err = s.Client.VirtualMachineInstances(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return false, err
		}
		return err == nil, nil
	})
	if err != nil || v.UID != uid || v.Status.NodeName == from || v.Status.NodeName == "" {
		return "" // also if it is not known
	}
	return "moved to node " + v.Status.NodeName
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
	namespace, name, uid, node := v.Namespace, v.Name, v.UID, v.Status.NodeName // v is not kept as long as the stream
	o.Gone = func() string { return s.moved(namespace, name, uid, node) }
	switch err := Join(r.w, r.Request, far, o); {
	case errors.Is(err, ErrNoWebsocket):
		return bad("%v", err)
	case err != nil:
		return errStreamed // the client is gone
	}
	r.admitted()
	return errStreamed
}
