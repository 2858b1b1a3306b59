package client

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/vmi"
)

// Client reads and writes the kinds of package vmi. It is safe for concurrent
// use.
type Client struct {
	rest  rest.Interface
	codec runtime.ParameterCodec
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
	return at[*vmi.VirtualMachineInstance](c, vmi.Kind, vmi.Resource, namespace,
		func() *vmi.VirtualMachineInstanceList { return &vmi.VirtualMachineInstanceList{} })
}

// VirtualMachines reads and writes VirtualMachines in the namespace, or in all
// of them if it is empty.
func (c *Client) VirtualMachines(namespace string) VirtualMachines {
	return at[*vmi.VirtualMachine](c, vmi.VirtualMachineKind, vmi.VirtualMachineResource, namespace,
		func() *vmi.VirtualMachineList { return &vmi.VirtualMachineList{} })
}

// VirtualMachineInstanceReplicaSets reads and writes replica sets in the
// namespace, or in all of them if it is empty.
func (c *Client) VirtualMachineInstanceReplicaSets(namespace string) ReplicaSets {
	return replicaSets{at[*vmi.VirtualMachineInstanceReplicaSet](c, vmi.ReplicaSetKind, vmi.ReplicaSetResource, namespace,
		func() *vmi.VirtualMachineInstanceReplicaSetList { return &vmi.VirtualMachineInstanceReplicaSetList{} })}
}

// VirtualMachineInstanceMigrations reads and writes migrations in the
// namespace, or in all of them if it is empty.
func (c *Client) VirtualMachineInstanceMigrations(namespace string) Migrations {
	return at[*vmi.VirtualMachineInstanceMigration](c, vmi.MigrationKind, vmi.MigrationResource, namespace,
		func() *vmi.VirtualMachineInstanceMigrationList { return &vmi.VirtualMachineInstanceMigrationList{} })
}

// KubeVirts reads and writes the configuration of Podvisor in the namespace, or
// in all of them if it is empty.
func (c *Client) KubeVirts(namespace string) KubeVirts {
	return at[*vmi.KubeVirt](c, vmi.KubeVirtKind, vmi.KubeVirtResource, namespace,
		func() *vmi.KubeVirtList { return &vmi.KubeVirtList{} })
}

// at makes the client of one kind in one namespace.
func at[T Object, L runtime.Object](c *Client, kind schema.GroupVersionKind, r schema.GroupVersionResource, namespace string, list func() L) objects[T, L] {
	return objects[T, L]{rest: c.rest, codec: c.codec, kind: kind, resource: r.Resource, namespace: namespace, list: list}
}
