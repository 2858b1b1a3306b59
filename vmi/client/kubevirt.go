package client

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"

	"github.com/podvisor/podvisor/vmi"
)

// KubeVirts reads and writes KubeVirts in one namespace, or lists and watches
// them in all.
type KubeVirts interface {
	Create(ctx context.Context, v *vmi.KubeVirt, opts metav1.CreateOptions) (*vmi.KubeVirt, error)
	Update(ctx context.Context, v *vmi.KubeVirt, opts metav1.UpdateOptions) (*vmi.KubeVirt, error)
	UpdateStatus(ctx context.Context, v *vmi.KubeVirt, opts metav1.UpdateOptions) (*vmi.KubeVirt, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*vmi.KubeVirt, error)
	List(ctx context.Context, opts metav1.ListOptions) (*vmi.KubeVirtList, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*vmi.KubeVirt, error)
}

// KubeVirts reads and writes the configuration of Podvisor in the namespace, or
// in all of them if it is empty.
func (c *Client) KubeVirts(namespace string) KubeVirts {
	return gentype.NewClientWithList(vmi.KubeVirtResource.Resource, c.rest, c.codec, namespace,
		func() *vmi.KubeVirt { return &vmi.KubeVirt{} },
		func() *vmi.KubeVirtList { return &vmi.KubeVirtList{} })
}
