package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/network/cni"
	"github.com/podvisor/podvisor/vmi"
)

// definitions are what the networks of the VMI need, by the networks' names. They are
// read from the API server, each once, and not watched: most clusters have many VMIs and
// few definitions, and a VMI needs one at its start only. In a cluster without Multus none
// exists.
func (c *Controller) definitions(ctx context.Context, v *vmi.VirtualMachineInstance) (map[string]*cni.Definition, error) {
	if c.cfg.Dynamic == nil || v.DeletionTimestamp != nil || v.Status.Phase != vmi.PhaseUnset && v.Status.Phase != vmi.Pending {
		return nil, nil
	}
	seen := map[types.NamespacedName]*cni.Definition{}
	all := map[string]*cni.Definition{}
	for network, at := range cni.Definitions(v) {
		d, ok := seen[at]
		if !ok {
			var err error
			if d, err = c.definition(ctx, at); err != nil {
				return nil, err
			}
			seen[at] = d
		}
		all[network] = d
	}
	return all, nil
}

// definition is what is read of a NetworkAttachmentDefinition. Nil: it does not exist.
func (c *Controller) definition(ctx context.Context, at types.NamespacedName) (*cni.Definition, error) {
	if at.Namespace == "" || len(content.IsPathSegmentName(at.Namespace)) > 0 {
		return nil, nil
	}
	in := c.cfg.Dynamic.Resource(cni.DefinitionResource).Namespace(at.Namespace)
	o, err := read(ctx, "NetworkAttachmentDefinition", at.Name, func(ctx context.Context, name string, o metav1.GetOptions) (*unstructured.Unstructured, error) {
		return in.Get(ctx, name, o)
	})
	if o == nil || err != nil {
		return nil, err
	}
	return &cni.Definition{Resource: o.GetAnnotations()[cni.ResourceAnnotation]}, nil
}
