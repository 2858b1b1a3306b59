package subresource

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/vmi/verb"
	"github.com/podvisor/podvisor/scheduler/sizing"
)

// smallObject is the size of a body that does not wait for others, in bytes.
const smallObject = 32 << 10

// body reads the body, as far as the verb does. leave is to be called when nothing that was
// decoded of it is used any more.
func (s *Server) body(ctx context.Context, r *request) (b []byte, leave func(), err error) {
	leave = func() {}
	if r.verb.Body == verb.NoBody {
		return nil, leave, nil
	}
	if b, err = io.ReadAll(http.MaxBytesReader(r.w, r.Body, int64(r.verb.Body))); err != nil {
		return nil, leave, apierrors.NewBadRequest("Can not read Request body, error: " + err.Error())
	}
	if len(b) > smallObject {
		select {
		case s.large <- struct{}{}:
			leave = func() { <-s.large }
		case <-ctx.Done():
			return nil, leave, unavailable("too many large objects are read; try again")
		}
	}
	return b, leave, nil
}

// observe reads what the verb is decided on.
func (s *Server) observe(ctx context.Context, r *request, body []byte) (o verb.Observed, err error) {
	in := s.Settings()
	o = verb.Observed{
		Namespace: r.namespace, Name: r.name, Body: body, Tail: r.rest,
		Drain: *in.Migration(nil).NodeDrainTaintKey, Defaults: in.Defaults, Now: time.Now(),
		Lookup: sizing.Lookup(ctx, s.Client, s.Kube),
	}
	o.Keep, _ = strconv.ParseBool(r.URL.Query().Get("preserveSession"))
	if r.verb.Needs(verb.VM) {
		if o.VM, err = present(s.Client.VirtualMachines(r.namespace).Get(ctx, r.name, metav1.GetOptions{})); err != nil {
			return o, err
		}
		if o.VM == nil && r.resource == verb.VMs {
			return o, nil
		}
	}
	if r.verb.Needs(verb.VMI) {
		if o.VMI, err = present(s.Client.VirtualMachineInstances(r.namespace).Get(ctx, r.name, metav1.GetOptions{})); err != nil {
			return o, err
		}
	}
	if node := verb.NodeOf(o.VMI); node != "" && r.verb.Needs(verb.Node) {
		n, err := present(s.Kube.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{}))
		if err != nil {
			return o, err
		}
		if n != nil {
			o.Taints = n.Spec.Taints
		}
	}
	return o, nil
}

// present is the object that was read. Nil: there is none.
func present[T any](o *T, err error) (*T, error) {
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return o, nil
}
