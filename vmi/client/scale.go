package client

import (
	"context"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
}

func (c replicaSets) GetScale(ctx context.Context, name string, opts metav1.GetOptions) (*autoscalingv1.Scale, error) {
	s := &autoscalingv1.Scale{}
	return s, c.on(c.rest.Get(), &opts, name, "scale").Do(ctx).Into(s)
}

func (c replicaSets) UpdateScale(ctx context.Context, name string, s *autoscalingv1.Scale, opts metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	out := &autoscalingv1.Scale{}
	return out, c.on(c.rest.Put(), &opts, name, "scale").Body(s).Do(ctx).Into(out)
}
