package fake

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podvisor/podvisor/vmi"
)

// watch writes what changes, until the client goes, its time is over or the
// server disconnects it.
func (s *Server) watch(w http.ResponseWriter, q request) {
	ok, err := q.selector()
	if err != nil {
		fail(w, err)
		return
	}
	ctx := q.Context()
	if seconds, err := strconv.Atoi(q.URL.Query().Get("timeoutSeconds")); err == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
		defer cancel()
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	out := stream{w, json.NewEncoder(w)}
	s.mu.Lock()
	ended := s.ended
	first, at := s.begin(q, ok)
	s.mu.Unlock()
	for _, e := range first {
		if out.send(e.Type, e.Object) != nil {
			return
		}
	}
	if at < 0 {
		return
	}
	for {
		s.mu.Lock()
		news, changed, version := s.since(at), s.changed, s.version
		s.mu.Unlock()
		for _, e := range news {
			if t, o := seen(e, q.kind, ok); t != "" && out.send(t, o.Object) != nil {
				return
			}
		}
		at = version
		select {
		case <-changed:
		case <-ended:
			return
		case <-ctx.Done():
			return
		}
	}
}

// sent is an event as it is written.
type sent struct {
	Type   watch.EventType `json:"type"`
	Object any             `json:"object"`
}

// begin returns what a watch sends first, and the version it goes on from; -1
// ends it.
func (s *Server) begin(q request, ok func(*unstructured.Unstructured) bool) ([]sent, int64) {
	params := q.URL.Query()
	initial, err := strconv.ParseBool(params.Get("sendInitialEvents"))
	v := params.Get("resourceVersion")
	if from, err := strconv.ParseInt(v, 10, 64); !initial && err == nil && from > 0 {
		if from < s.forgotten {
			gone := apierrors.NewResourceExpired("too old resource version: " + v).ErrStatus
			gone.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			return []sent{{watch.Error, gone}}, -1
		}
		return nil, from
	}
	var out []sent
	if initial || err != nil {
		for _, o := range s.list(q.kind, q.namespace) {
			if ok(o) {
				out = append(out, sent{watch.Added, o.Object})
			}
		}
	}
	if initial {
		out = append(out, sent{watch.Bookmark, map[string]any{
			"apiVersion": q.kind.GroupVersion().String(), "kind": q.kind.Kind,
			"metadata": map[string]any{
				"resourceVersion": strconv.FormatInt(s.version, 10),
				"annotations":     map[string]any{metav1.InitialEventsAnnotationKey: "true"},
			},
		}})
	}
	return out, s.version
}

// seen is the event in a watch that selects by ok: an object that begins to be
// selected is added, one that ceases to be is deleted. "" if it is not in the watch.
func seen(e event, kind *vmi.Definition, ok func(*unstructured.Unstructured) bool) (watch.EventType, *unstructured.Unstructured) {
	if e.kind != kind {
		return "", nil
	}
	was := e.before != nil && ok(e.before)
	is := e.after != nil && ok(e.after)
	switch {
	case was && is:
		return watch.Modified, e.after
	case is:
		return watch.Added, e.after
	case was && e.after == nil:
		return watch.Deleted, e.before
	case was:
		o := e.before.DeepCopy()
		o.SetResourceVersion(strconv.FormatInt(e.version, 10))
		return watch.Deleted, o
	}
	return "", nil
}

// stream writes events, each at once.
type stream struct {
	to  http.ResponseWriter
	enc *json.Encoder
}

func (s stream) send(t watch.EventType, o any) error {
	if err := s.enc.Encode(sent{t, o}); err != nil {
		return err
	}
	if f, ok := s.to.(http.Flusher); ok {
		f.Flush()
	}
	return nil
}
