package fake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/internal/websocket"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/kinds"
)

// Server is an API server in memory. It is safe for concurrent use.
type Server struct {
	mu sync.Mutex
	store
	// kinds are the kinds that are served.
	kinds    map[schema.GroupVersionResource]*vmi.Definition
	managers managers
	// streams are the open streams of the verbs.
	streams map[*websocket.Conn]opened
	// cuts counts the calls of Disconnect: a client may have a stream before it is in
	// streams.
	cuts int
}

// New makes a Server that serves the kinds of the table in package vmi/kinds and
// holds the objects as they are, with their status. Each gets what the API server
// gives every object and it has not: a UID and the time of its creation. New
// panics if an object is of a kind that is not served, has no name, or is there
// twice.
func New(objects ...vmi.Object) *Server { return Serving(nil, objects...) }

// Serving is like [New] and serves further kinds, of any API group.
func Serving(more []vmi.Definition, objects ...vmi.Object) *Server {
	s := &Server{store: newStore(), kinds: map[schema.GroupVersionResource]*vmi.Definition{}, streams: map[*websocket.Conn]opened{}}
	for _, d := range append(kinds.Definitions(), more...) {
		s.kinds[d.Resource()] = &d
	}
	s.Add(objects...)
	return s
}

// Add adds objects as they are, with their status, as [New] does: what a controller would
// create and write meanwhile. Watches see them. It panics as New does.
func (s *Server) Add(objects ...vmi.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range objects {
		if err := s.hold(o); err != nil {
			panic(fmt.Sprintf("add to a fake API server: %T %s/%s: %v", o, o.GetNamespace(), o.GetName(), err))
		}
	}
}

// hold stores the object as it is.
func (s *Server) hold(o vmi.Object) error {
	for _, d := range s.kinds {
		if reflect.TypeOf(d.New()) != reflect.TypeOf(o) {
			continue
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return err
		}
		u := &unstructured.Unstructured{Object: content}
		u.SetGroupVersionKind(d.GroupVersionKind)
		return s.create(d, u)
	}
	return errors.New("the kind is not served")
}

// Config is the configuration of a client that talks to the server. It has no rate limit,
// and its content is JSON: the server reads no protobuf, as an API server does not for
// custom resources. The caller may change it.
func (s *Server) Config() *rest.Config {
	return &rest.Config{
		Host: "http://fake", Transport: s, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON},
	}
}

// Disconnect ends all watches and cuts all streams, as an API server does that
// restarts.
func (s *Server) Disconnect() {
	s.mu.Lock()
	s.disconnect()
	s.cuts++
	streams := slices.Collect(maps.Keys(s.streams))
	s.mu.Unlock()
	for _, c := range streams {
		c.Cut()
	}
}

// Expire ends all watches and drops all events: a watch from the version that a
// client has is answered with Expired, and the client must list.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	s.disconnect()
}

// RoundTrip answers the request by [Server.ServeHTTP].
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	return roundTrip(r.WithContext(ctx), cancel, s)
}
