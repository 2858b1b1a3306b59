package subresource

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/jsonpatch"
	"github.com/podvisor/podvisor/internal/vmi/verb"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// errChanged is that the object is not as it was read: what was checked is to be checked
// again.
var errChanged = errors.New("the object has changed")

// attempts is how often a verb is tried while its object changes.
const attempts = 5

// do observes, decides and acts, again while the objects change in between.
func (s *Server) do(ctx context.Context, r *request) (any, error) {
	body, leave, err := s.body(ctx, r)
	if err != nil {
		return nil, err
	}
	defer leave()
	for range attempts {
		o, err := s.observe(ctx, r, body)
		if err != nil {
			return nil, err
		}
		plan, err := r.verb.Decide(o)
		if err != nil {
			return nil, err
		}
		answer, err := s.act(ctx, r, o.VMI, plan)
		if !errors.Is(err, errChanged) {
			return answer, err
		}
	}
	return nil, apierrors.NewConflict(r.verb.Of(), r.name, errors.New("it changes while it is read; try again"))
}

// act does what the plan says. v is the VMI of the request, if it has one.
func (s *Server) act(ctx context.Context, r *request, v *vmi.VirtualMachineInstance, p verb.Plan) (any, error) {
	for n, patch := range p.Patches {
		if err := s.patch(ctx, r, patch, patch.Operations); err != nil {
			s.undo(context.WithoutCancel(ctx), r, p.Patches[:n])
			return nil, err
		}
	}
	switch {
	case p.Migration != nil:
		_, err := s.Client.VirtualMachineInstanceMigrations(r.namespace).Create(ctx, p.Migration, metav1.CreateOptions{DryRun: p.DryRun})
		return nil, verb.NotCreated(written(err))
	case p.Call != nil:
		return s.call(ctx, r, v, p.Call)
	case p.Stream != nil && p.Stream.Name == verb.Screenshot:
		return nil, s.screenshot(ctx, r, v)
	case p.Stream != nil:
		return nil, s.open(ctx, r, v, *p.Stream)
	}
	return p.Answer, nil
}

// call calls the launcher of the VMI, and returns what it answers.
func (s *Server) call(ctx context.Context, r *request, v *vmi.VirtualMachineInstance, c *verb.Call) (answer any, err error) {
	if r.verb.Answer != nil {
		answer = r.verb.Answer()
	}
	if err := s.Guests.Call(ctx, v, protocol.Call(r.verb.Subresource), c.Options, answer); err != nil {
		return nil, r.verb.Refused(v, err)
	}
	return answer, nil
}

// undo takes back the patches that were made, as far as they can be.
func (s *Server) undo(ctx context.Context, r *request, made []verb.Patch) {
	for _, p := range made {
		if len(p.Undo) == 0 || len(p.DryRun) > 0 {
			continue
		}
		if err := s.patch(ctx, r, p, p.Undo); err != nil {
			s.Logger.Warn("cannot take a patch back", p.Of.Resource, r.namespace+"/"+r.name, "error", err)
		}
	}
}

// patch patches the object that the request names with the operations.
func (s *Server) patch(ctx context.Context, r *request, p verb.Patch, operations []jsonpatch.Operation) error {
	b, err := p.JSON(operations)
	if err != nil {
		return err
	}
	var subresources []string
	if p.Subresource != "" {
		subresources = []string{p.Subresource}
	}
	o := metav1.PatchOptions{DryRun: p.DryRun}
	if p.Of == verb.OfVM {
		_, err = s.Client.VirtualMachines(r.namespace).Patch(ctx, r.name, types.JSONPatchType, b, o, subresources...)
	} else {
		_, err = s.Client.VirtualMachineInstances(r.namespace).Patch(ctx, r.name, types.JSONPatchType, b, o, subresources...)
	}
	if apierrors.IsNotFound(err) {
		return apierrors.NewNotFound(p.Of, r.name)
	}
	return patched(written(err))
}

// patched is the error of a patch: errChanged if a test failed. The API server answers
// that with Invalid without a cause; a refusal of the object or of a policy has causes.
func patched(err error) error {
	var s apierrors.APIStatus
	switch {
	case apierrors.IsConflict(err):
		return errChanged
	case !apierrors.IsInvalid(err) || !errors.As(err, &s):
		return err
	case s.Status().Details == nil || len(s.Status().Details.Causes) == 0:
		return errChanged
	}
	return err
}

// written is nil for a patch that was done and whose answer cannot be decoded.
func written(err error) error {
	if errors.Is(err, vmi.ErrUnreadable) {
		return nil
	}
	return err
}
