package node

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/vmi"
)

// definitions and daemonSets are the resources that say whether Podvisor is being
// uninstalled.
var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	daemonSets  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
)

// RemovalConfig is the configuration of a Removal.
type RemovalConfig struct {
	// Metadata reads the definition of VMIs and the DaemonSet. Required.
	Metadata metadata.Interface
	// Namespace and DaemonSet name the DaemonSet that this process is of. Empty:
	// only the definition of VMIs counts.
	Namespace, DaemonSet string
	// Changed is called after each change of what [Removal.Begun] answers. Nil:
	// nothing is.
	Changed func()
	// Logger takes a line for each such change. Nil: nothing is logged.
	Logger *slog.Logger
}

// Removal finds out whether Podvisor is being uninstalled, and not only restarted.
type Removal struct {
	config   RemovalConfig
	informer cache.SharedIndexInformer
	begun    atomic.Bool
}

// NewRemoval makes a Removal. It reads nothing until it runs.
func NewRemoval(c RemovalConfig) (*Removal, error) {
	if c.Metadata == nil {
		return nil, errors.New("configure the removal: metadata is required")
	}
	if c.Changed == nil {
		c.Changed = func() {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Removal{config: c}
	r.informer = metadatainformer.NewFilteredMetadataInformer(c.Metadata, definitions, metav1.NamespaceAll, 0, cache.Indexers{},
		func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, definition).String()
		}).Informer()
	_, err := r.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { r.set(leaves(o.(metav1.Object))) },
		UpdateFunc: func(_, o any) { r.set(leaves(o.(metav1.Object))) },
		DeleteFunc: func(any) { r.set(true) },
	})
	return r, err
}

// definition is the name of the definition of VMIs.
var definition = vmi.Resource.GroupResource().String()

func leaves(o metav1.Object) bool { return o.GetDeletionTimestamp() != nil }

func (r *Removal) set(begun bool) {
	if r.begun.Swap(begun) != begun {
		r.config.Logger.Info("observed the definition of VMIs", "name", definition, "deleted", begun)
		r.config.Changed()
	}
}

// Run follows the definition of VMIs until ctx ends.
func (r *Removal) Run(ctx context.Context) error {
	r.informer.RunWithContext(ctx)
	return nil
}

// Begun reports whether the definition of VMIs is being deleted, or was: there can
// be no VMIs until it is created again.
func (r *Removal) Begun() bool { return r.begun.Load() }

// Uninstalled reports whether this process, which ends, will have no successor on
// the node: the definition of VMIs or the DaemonSet is being deleted, or the rights
// to read them are. If the API server cannot be asked, it reports false.
func (r *Removal) Uninstalled(ctx context.Context) bool {
	if r.Begun() {
		return true
	}
	if r.config.DaemonSet != "" {
		o, err := r.config.Metadata.Resource(daemonSets).Namespace(r.config.Namespace).Get(ctx, r.config.DaemonSet, metav1.GetOptions{})
		// A role that never was there says nothing.
		if !apierrors.IsForbidden(err) {
			return isGone(o, err)
		}
	}
	o, err := r.config.Metadata.Resource(definitions).Get(ctx, definition, metav1.GetOptions{})
	return isGone(o, err)
}

// isGone reports whether what was read is deleted, or the rights of the reader are.
func isGone(o *metav1.PartialObjectMetadata, err error) bool {
	if err != nil {
		return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
	}
	return leaves(o)
}
