package fake

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/vmi"
)

// Object is an object of one of the kinds of package vmi.
type Object interface {
	runtime.Object
	metav1.Object
}

// Server is an API server in memory. It is safe for concurrent use.
type Server struct {
	mu sync.Mutex
	store
	managers managers
}

// kinds are the kinds that are served, by their resources.
var kinds = map[string]schema.GroupVersionKind{
	vmi.Resource.Resource:               vmi.Kind,
	vmi.VirtualMachineResource.Resource: vmi.VirtualMachineKind,
	vmi.ReplicaSetResource.Resource:     vmi.ReplicaSetKind,
	vmi.MigrationResource.Resource:      vmi.MigrationKind,
	vmi.KubeVirtResource.Resource:       vmi.KubeVirtKind,
}

// New makes a Server that holds the objects as they are, with their status. Each
// gets what the API server gives every object and it has not: a UID and the time
// of its creation. New panics if an object is of a kind that is not served, has
// no name, or is there twice.
func New(objects ...Object) *Server {
	s := &Server{store: newStore()}
	for _, o := range objects {
		u, resource, err := decoded(o)
		if err == nil {
			err = s.create(resource, u)
		}
		if err != nil {
			panic(fmt.Sprintf("fake.New: %T %s/%s: %v", o, o.GetNamespace(), o.GetName(), err))
		}
	}
	return s
}

// decoded is the object as it is stored, and its resource.
func decoded(o Object) (*unstructured.Unstructured, string, error) {
	scheme := runtime.NewScheme()
	if err := vmi.AddToScheme(scheme); err != nil {
		return nil, "", err
	}
	is, _, err := scheme.ObjectKinds(o)
	if err != nil {
		return nil, "", err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, "", err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(is[0])
	for r, k := range kinds {
		if k == is[0] {
			return u, r, nil
		}
	}
	return nil, "", fmt.Errorf("%s is not served", is[0])
}

// Config is the configuration of a client that talks to the server. It has no
// rate limit.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: "http://fake", Transport: s, QPS: -1}
}

// Disconnect ends all watches, as an API server does that restarts.
func (s *Server) Disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disconnect()
}

// Expire ends all watches and forgets what changed before: a client that wants
// to watch from where it was is told that the version has expired, and must list.
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
