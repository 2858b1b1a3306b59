package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	backoff "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podvisor/podvisor/vmi"
)

// Watched are objects T that can be waited for and cached: [Objects], what embeds it, and the
// clients of client-go.
type Watched[T vmi.Object, L runtime.Object] interface {
	// Get says what the objects are. It is not called.
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// WaitFor waits until done says so of the object, and returns it. It asks done
// about the object as it is now and after each change; while there is no such
// object, done is not asked, and the wait goes on: see [WaitForDeletion] for how to
// wait for the end of an object. The object may change twice before done sees it
// once.
//
// An error of done ends the wait. So does an answer of the API server that will
// not change by itself, such as Forbidden, and an object that cannot be decoded,
// with an error that wraps [vmi.ErrUnreadable]; lost connections, expired watches
// and an API server that is away do not. Then the object as it was last seen is
// returned together with the error, or nil if there was none. Without a deadline in
// the context, the wait has none.
func WaitFor[T vmi.Object, L runtime.Object](ctx context.Context, o Watched[T, L], name string, done func(T) (bool, error)) (T, error) {
	return wait(ctx, o, name, func(o T) (bool, error) {
		if isNone(o) {
			return false, nil
		}
		if err := readable(reflect.TypeOf(o).Elem().Name(), o); err != nil {
			return false, err
		}
		return done(o)
	})
}

// WaitForDeletion waits until the object that has the name now does not exist any
// more, even if there is another of its name by then. If there is none now, the wait
// is over. The context and the answers of the API server end it as they end
// [WaitFor].
func WaitForDeletion[T vmi.Object, L runtime.Object](ctx context.Context, o Watched[T, L], name string) error {
	first := none[T]()
	_, err := wait(ctx, o, name, func(o T) (bool, error) {
		if isNone(first) {
			first = o
		}
		return isNone(o) || o.GetUID() != first.GetUID(), nil
	})
	return err
}

// wait is WaitFor, except that done is asked about any object, and with nil while
// there is none.
func wait[T vmi.Object, L runtime.Object](ctx context.Context, o Watched[T, L], name string, done func(T) (bool, error)) (T, error) {
	w := waiter[T, L]{objects: o, name: name, done: done}
	pause := retries()
	for {
		w.news = false
		begun := time.Now()
		err := w.follow(ctx)
		switch {
		case w.met:
			return w.now, nil
		case errors.As(err, &stop{}):
			return w.last, errors.Unwrap(err)
		case w.news, time.Since(begun) > longWatch:
			pause = retries()
		}
		t := time.NewTimer(pause.Step())
		select {
		case <-ctx.Done():
			t.Stop()
			return w.last, cause(ctx, err)
		case <-t.C:
		}
	}
}

// longWatch is how long a watch lasts at least whose end is no sign of trouble.
const longWatch = time.Minute

// retries are the pauses before the next list, until there is news again: 20 ms
// and then longer, up to 5 s.
func retries() backoff.Backoff {
	return backoff.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 8}
}

// waiter follows one object.
type waiter[T vmi.Object, L runtime.Object] struct {
	objects Watched[T, L]
	name    string
	done    func(T) (bool, error)
	// now is the object as it is, and last as it last was; now is nil while there
	// is none.
	now, last T
	// met says that done was true of now.
	met bool
	// news says that the object has changed since news was last set to false.
	news bool
}

// stop is an error that ends the wait.
type stop struct{ error }

func (s stop) Unwrap() error { return s.error }

// follow lists the object and watches it from there, until the wait ends or the
// watch does.
func (w *waiter[T, L]) follow(ctx context.Context) error {
	which := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, w.name).String()}
	version, err := w.list(ctx, which)
	if err != nil || w.met {
		return err
	}
	which.ResourceVersion = version
	i, err := w.objects.Watch(ctx, which)
	if err != nil {
		return final(err)
	}
	defer i.Stop()
	for e := range i.ResultChan() {
		switch o, _ := e.Object.(T); e.Type {
		case watch.Added, watch.Modified:
			err = w.see(o)
		case watch.Deleted:
			err = w.see(none[T]())
		case watch.Error:
			// Most often the version is too old. A new list is the way out of all
			// of them.
			return apierrors.FromObject(e.Object)
		}
		if err != nil || w.met {
			return err
		}
	}
	return nil
}

// list sees the object as it is now and returns the version of that.
func (w *waiter[T, L]) list(ctx context.Context, which metav1.ListOptions) (string, error) {
	l, err := w.objects.List(ctx, which)
	if err != nil && !errors.Is(err, vmi.ErrUnreadable) { // done decides on an object that cannot be decoded
		return "", final(err)
	}
	m, err := meta.ListAccessor(l)
	if err != nil {
		return "", stop{err}
	}
	var o T
	err = meta.EachListItem(l, func(i runtime.Object) error {
		o, _ = i.(T)
		return nil
	})
	if err != nil {
		return "", stop{err}
	}
	return m.GetResourceVersion(), w.see(o)
}

// see asks done about the object.
func (w *waiter[T, L]) see(o T) error {
	// A list that finds what the last one found is no change: if no watch comes to
	// be, it would be the next list at once.
	if isNone(o) != isNone(w.now) || !isNone(o) && o.GetResourceVersion() != w.now.GetResourceVersion() {
		w.news = true
	}
	w.now = o
	if !isNone(o) {
		w.last = o
	}
	var err error
	if w.met, err = w.done(o); err != nil {
		w.met = false
		return stop{err}
	}
	return nil
}

// final makes the error one that ends the wait if the same request will
// always be answered so.
func final(err error) error {
	var s apierrors.APIStatus
	if !errors.As(err, &s) {
		return err
	}
	switch code := s.Status().Code; code {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusGone, http.StatusTooManyRequests:
		return err
	default:
		if code >= 400 && code < 500 || code == http.StatusNotImplemented {
			return stop{err}
		}
		return err
	}
}

// cause is why the context ended, with what went wrong before.
func cause(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w; before that: %w", context.Cause(ctx), err)
}
