package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/podvisor/podvisor/network/cni"
	"github.com/podvisor/podvisor/vmi"
)

// definitions are what the networks of the VMI need, by the networks' names, as long as
// it has no pod. They are read from the API server, each once, and not watched: most
// clusters have many VMIs and few definitions, and a VMI needs one at its start only. In a
// cluster without Multus none exists.
func (c *Controller) definitions(ctx context.Context, v *vmi.VirtualMachineInstance) (map[string]*cni.Definition, error) {
	if c.cfg.Dynamic == nil || v.DeletionTimestamp != nil || v.Status.Phase != vmi.PhaseUnset && v.Status.Phase != vmi.PhasePending {
		return nil, nil
	}
	return readDefinitions(ctx, c.cfg.Dynamic, v)
}

func readDefinitions(ctx context.Context, d dynamic.Interface, v *vmi.VirtualMachineInstance) (map[string]*cni.Definition, error) {
	seen := map[types.NamespacedName]*cni.Definition{}
	all := map[string]*cni.Definition{}
	for network, at := range cni.Definitions(v) {
		of, ok := seen[at]
		if !ok {
			var err error
			if of, err = readDefinition(ctx, d, at); err != nil {
				return nil, err
			}
			seen[at] = of
		}
		all[network] = of
	}
	return all, nil
}

// readDefinition reads what is needed of a NetworkAttachmentDefinition. Nil: it does not
// exist.
func readDefinition(ctx context.Context, d dynamic.Interface, at types.NamespacedName) (*cni.Definition, error) {
	if at.Namespace == "" || len(content.IsPathSegmentName(at.Namespace)) > 0 {
		return nil, nil
	}
	in := d.Resource(cni.DefinitionResource).Namespace(at.Namespace)
	o, err := read(ctx, "NetworkAttachmentDefinition", at.Name, func(ctx context.Context, name string, o metav1.GetOptions) (*unstructured.Unstructured, error) {
		return in.Get(ctx, name, o)
	})
	if o == nil || err != nil {
		return nil, err
	}
	return &cni.Definition{Resource: o.GetAnnotations()[cni.ResourceAnnotation]}, nil
}
