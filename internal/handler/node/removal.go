package node

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/podvisor/podvisor/vmi"
)

// definitions and daemonSets are the resources that say whether Podvisor is being
// uninstalled.
var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	daemonSets  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
)

// Removal finds out whether Podvisor is being uninstalled, and not only restarted.
type Removal struct {
	// Metadata reads the definition of VMIs and the DaemonSet. Required.
	Metadata metadata.Interface
	// Namespace and DaemonSet name the DaemonSet that this process is of. Empty:
	// only the definition of VMIs counts.
	Namespace, DaemonSet string
}

// Uninstalled reports whether this process, which ends, will have no successor on
// the node: the DaemonSet or the definition of VMIs is being deleted, or the rights
// to read them are. If the API server cannot be asked, it reports false.
func (r Removal) Uninstalled(ctx context.Context) bool {
	if r.DaemonSet != "" {
		o, err := r.Metadata.Resource(daemonSets).Namespace(r.Namespace).Get(ctx, r.DaemonSet, metav1.GetOptions{})
		// A role that never was there says nothing.
		if !apierrors.IsForbidden(err) {
			return isGone(o, err)
		}
	}
	o, err := r.Metadata.Resource(definitions).Get(ctx, vmi.VirtualMachineInstances.Resource().GroupResource().String(), metav1.GetOptions{})
	return isGone(o, err)
}

// isGone reports whether what was read is deleted, or the rights of the reader are. A
// token that is not accepted says nothing: that of a pod that was deleted by force is
// not, and its successor may be there.
func isGone(o *metav1.PartialObjectMetadata, err error) bool {
	if err != nil {
		return apierrors.IsNotFound(err) || apierrors.IsForbidden(err)
	}
	return o.DeletionTimestamp != nil
}
