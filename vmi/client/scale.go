package client

import (
	"context"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/podvisor/podvisor/vmi"
)

// ReplicaSets reads and writes VirtualMachineInstanceReplicaSets and their
// scale: how many machines are wanted and how many there are, in the form that
// autoscalers speak.
type ReplicaSets interface {
	Objects[*vmi.VirtualMachineInstanceReplicaSet, *vmi.VirtualMachineInstanceReplicaSetList]
	GetScale(ctx context.Context, name string, opts metav1.GetOptions) (*autoscalingv1.Scale, error)
	// UpdateScale sets the number of machines that are wanted, and nothing else.
	UpdateScale(ctx context.Context, name string, s *autoscalingv1.Scale, opts metav1.UpdateOptions) (*autoscalingv1.Scale, error)
}

type replicaSets struct {
	objects[*vmi.VirtualMachineInstanceReplicaSet, *vmi.VirtualMachineInstanceReplicaSetList]
	codec runtime.ParameterCodec
}

// GetScale reads the scale of the set.
func (c replicaSets) GetScale(ctx context.Context, name string, opts metav1.GetOptions) (*autoscalingv1.Scale, error) {
	s := &autoscalingv1.Scale{}
	err := c.GetClient().Get().Namespace(c.GetNamespace()).Resource(vmi.ReplicaSetResource.Resource).Name(name).SubResource("scale").
		VersionedParams(&opts, c.codec).Do(ctx).Into(s)
	return s, err
}

// UpdateScale writes the scale of the set.
func (c replicaSets) UpdateScale(ctx context.Context, name string, s *autoscalingv1.Scale, opts metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	out := &autoscalingv1.Scale{}
	err := c.GetClient().Put().Namespace(c.GetNamespace()).Resource(vmi.ReplicaSetResource.Resource).Name(name).SubResource("scale").
		VersionedParams(&opts, c.codec).Body(s).Do(ctx).Into(out)
	return out, err
}
