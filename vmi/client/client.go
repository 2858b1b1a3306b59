package client

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/vmi"
)

// Client reads and writes the kinds of package vmi. It is safe for concurrent
// use.
type Client struct {
	rest  rest.Interface
	codec runtime.ParameterCodec
}

// Instances reads and writes VirtualMachineInstances in one namespace, or lists
// and watches them in all.
type Instances interface {
	Create(ctx context.Context, v *vmi.VirtualMachineInstance, opts metav1.CreateOptions) (*vmi.VirtualMachineInstance, error)
	Update(ctx context.Context, v *vmi.VirtualMachineInstance, opts metav1.UpdateOptions) (*vmi.VirtualMachineInstance, error)
	UpdateStatus(ctx context.Context, v *vmi.VirtualMachineInstance, opts metav1.UpdateOptions) (*vmi.VirtualMachineInstance, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*vmi.VirtualMachineInstance, error)
	List(ctx context.Context, opts metav1.ListOptions) (*vmi.VirtualMachineInstanceList, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*vmi.VirtualMachineInstance, error)
}

// New makes a Client that talks to the API server of cfg. The configuration is
// copied; its content type is set to JSON, the only one that custom resources
// speak in every version of Kubernetes.
func New(cfg *rest.Config) (*Client, error) {
	s := runtime.NewScheme()
	if err := vmi.AddToScheme(s); err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.APIPath = "/apis"
	cfg.GroupVersion = &vmi.GroupVersion
	cfg.ContentType = runtime.ContentTypeJSON
	cfg.AcceptContentTypes = runtime.ContentTypeJSON
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(s).WithoutConversion()
	r, err := rest.RESTClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", vmi.GroupVersion, err)
	}
	return &Client{rest: r, codec: runtime.NewParameterCodec(s)}, nil
}

// VirtualMachineInstances reads and writes machines in the namespace, or in all
// of them if it is empty.
func (c *Client) VirtualMachineInstances(namespace string) Instances {
	return gentype.NewClientWithList(vmi.Resource.Resource, c.rest, c.codec, namespace,
		func() *vmi.VirtualMachineInstance { return &vmi.VirtualMachineInstance{} },
		func() *vmi.VirtualMachineInstanceList { return &vmi.VirtualMachineInstanceList{} })
}
