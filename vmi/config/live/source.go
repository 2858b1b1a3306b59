package live

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// definitions is the resource of the definitions of kinds.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// definition is an informer of the one definition of this name.
func definition(c metadata.Interface, name string) cache.SharedIndexInformer {
	return metadatainformer.NewFilteredMetadataInformer(c, definitions, metav1.NamespaceAll, 0, cache.Indexers{},
		func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		}).Informer()
}

// source is an informer that the state follows from.
type source struct {
	informer cache.SharedIndexInformer
	log      *slog.Logger
	changed  func()
	// optional says that the work goes on without what may not be read.
	optional bool
	// absent says that there is no such kind, or none for us: an answer too.
	absent atomic.Bool
}

func (s *source) prepare() error {
	if err := s.informer.SetWatchErrorHandlerWithContext(s.failed); err != nil {
		return err
	}
	_, err := s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { s.changed() },
		UpdateFunc: func(any, any) { s.changed() },
		DeleteFunc: func(any) { s.changed() },
	})
	return err
}

// failed takes an error of the list or the watch, which is tried again.
func (s *source) failed(_ context.Context, _ *cache.Reflector, err error) {
	goesWithout := apierrors.IsNotFound(err) || s.optional && apierrors.IsForbidden(err)
	if !goesWithout {
		s.log.Warn("read the configuration", "err", err)
		return
	}
	if !s.absent.Swap(true) {
		s.changed()
	}
}

// known says that what the informer holds is what there is, or was.
func (s *source) known() bool { return s.informer.HasSynced() || s.absent.Load() }

// lookForeign says that a definition is KubeVirt's own, or "".
func (w *Watcher) lookForeign() string {
	for _, o := range w.definitions() {
		if why := foreign(o); why != "" {
			return why
		}
	}
	return ""
}

// lookStatuses says whether a definition has the digest of the statuses of this version.
func (w *Watcher) lookStatuses() bool {
	return slices.ContainsFunc(w.definitions(), func(o metav1.Object) bool { return o.GetAnnotations()[statusesAnnotation] == statusesDigest })
}

// definitions are the definitions that are watched and are there.
func (w *Watcher) definitions() (all []metav1.Object) {
	for _, s := range w.sources[1:] {
		for _, o := range s.informer.GetStore().List() {
			all = append(all, o.(metav1.Object))
		}
	}
	return all
}
