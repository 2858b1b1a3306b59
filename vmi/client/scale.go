package client

import (
	"context"
	"encoding/json"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// ReplicaSets reads and writes VirtualMachineInstanceReplicaSets and their
// scale: the desired and the current number of VMIs, in the form that
// autoscalers use.
type ReplicaSets interface {
	Objects[*vmi.VirtualMachineInstanceReplicaSet, *vmi.VirtualMachineInstanceReplicaSetList]
	GetScale(ctx context.Context, name string, opts metav1.GetOptions) (*autoscalingv1.Scale, error)
	// UpdateScale sets the desired number of VMIs, and nothing else.
	UpdateScale(ctx context.Context, name string, s *autoscalingv1.Scale, opts metav1.UpdateOptions) (*autoscalingv1.Scale, error)
}

// scaleType is the kind and version of a Scale.
var scaleType = metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"}

type replicaSets struct {
	objects[*vmi.VirtualMachineInstanceReplicaSet, *vmi.VirtualMachineInstanceReplicaSetList]
}

func (c replicaSets) GetScale(ctx context.Context, name string, opts metav1.GetOptions) (*autoscalingv1.Scale, error) {
	return scale(c.on(c.rest.Get(), &opts, name, "scale").DoRaw(ctx))
}

func (c replicaSets) UpdateScale(ctx context.Context, name string, s *autoscalingv1.Scale, opts metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	typed := *s
	typed.TypeMeta = scaleType
	body, err := json.Marshal(typed)
	if err != nil {
		return nil, err
	}
	return scale(c.on(c.rest.Put(), &opts, name, "scale").SetHeader("Content-Type", "application/json").Body(body).DoRaw(ctx))
}

// scale reads an answer.
func scale(body []byte, err error) (*autoscalingv1.Scale, error) {
	if err != nil {
		return nil, err
	}
	s := &autoscalingv1.Scale{}
	if err := json.Unmarshal(body, s); err != nil {
		return nil, err
	}
	return s, nil
}
