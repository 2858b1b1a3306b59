package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// Complete makes a write on which an event depends. A write that has begun is completed even
// if ctx ends. One without an answer may have been done, so it is done once more: do returns
// no error if it finds then that it was done before.
func Complete(ctx context.Context, do func(context.Context) error) error {
	once := func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
		defer cancel()
		return do(ctx)
	}
	err := once()
	if unanswered(err) && ctx.Err() == nil {
		err = once()
	}
	return err
}

// unanswered reports whether a write with this error may have been done, since its answer was
// lost. An API server that does not answer in time has too much to do, and gets no second
// request at once.
func unanswered(err error) bool {
	if err == nil || errors.Is(err, vmi.ErrUnreadable) || errors.Is(err, context.DeadlineExceeded) || utilnet.IsConnectionRefused(err) {
		return false
	}
	status := apierrors.APIStatus(nil)
	return !errors.As(err, &status)
}

// asWritten is the stored object, if it has the status that a write of changed over old gives
// it. Otherwise conflict is returned.
func asWritten[T vmi.Object, L runtime.Object](ctx context.Context, c client.Objects[T, L], old, changed T, conflict error) (T, error) {
	now, err := c.Get(ctx, old.GetName(), metav1.GetOptions{})
	if err != nil || now.GetUID() != old.GetUID() {
		return old, conflict
	}
	var p statusOnly[T]
	if _, err := client.WriteStatus(ctx, &p, old, changed); err != nil {
		return old, conflict
	}
	stored, err := tree(now)
	if err != nil || !holds(stored["status"], p.tree["status"]) {
		return old, conflict
	}
	return now, nil
}

// statusOnly keeps a patch instead of sending it.
type statusOnly[T vmi.Object] struct{ tree map[string]any }

// Patch keeps the patch.
func (p *statusOnly[T]) Patch(_ context.Context, _ string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, _ ...string) (none T, err error) {
	return none, json.Unmarshal(patch, &p.tree)
}

func tree(o any) (all map[string]any, err error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(raw, &all)
}

// holds reports whether the merge patch changes nothing.
func holds(stored, patch any) bool {
	p, ok := patch.(map[string]any)
	if !ok {
		return reflect.DeepEqual(stored, patch)
	}
	s, _ := stored.(map[string]any)
	for k, v := range p {
		if !holds(s[k], v) {
			return false
		}
	}
	return true
}
