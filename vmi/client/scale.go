package client

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// ReplicaSets reads and writes VirtualMachineInstanceReplicaSets and their
// scale: how many machines are wanted and how many there are, in the form that
// autoscalers speak.
type ReplicaSets interface {
	Objects[*vmi.VirtualMachineInstanceReplicaSet, *vmi.VirtualMachineInstanceReplicaSetList]
	GetScale(ctx context.Context, name string, opts metav1.GetOptions) (*Scale, error)
	// UpdateScale sets the number of machines that are wanted, and nothing else.
	UpdateScale(ctx context.Context, name string, s *Scale, opts metav1.UpdateOptions) (*Scale, error)
}

// Scale is the kind Scale of the group autoscaling, version v1, on the wire. It
// has a type here because k8s.io/api/autoscaling brings all of core/v1 into the
// program.
type Scale struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ScaleSpec   `json:"spec,omitzero"`
	Status ScaleStatus `json:"status,omitzero"`
}

// ScaleSpec is how many objects are wanted.
type ScaleSpec struct {
	Replicas int32 `json:"replicas,omitempty"`
}

// ScaleStatus is how many objects there are.
type ScaleStatus struct {
	Replicas int32 `json:"replicas"`
	// Selector chooses their pods, in the form of a query.
	Selector string `json:"selector,omitempty"`
}

// scaleType is the kind and version of a Scale.
var scaleType = metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"}

type replicaSets struct {
	objects[*vmi.VirtualMachineInstanceReplicaSet, *vmi.VirtualMachineInstanceReplicaSetList]
}

func (c replicaSets) GetScale(ctx context.Context, name string, opts metav1.GetOptions) (*Scale, error) {
	return scale(c.on(c.rest.Get(), &opts, name, "scale").DoRaw(ctx))
}

func (c replicaSets) UpdateScale(ctx context.Context, name string, s *Scale, opts metav1.UpdateOptions) (*Scale, error) {
	typed := *s
	typed.TypeMeta = scaleType
	body, err := json.Marshal(typed)
	if err != nil {
		return nil, err
	}
	return scale(c.on(c.rest.Put(), &opts, name, "scale").SetHeader("Content-Type", "application/json").Body(body).DoRaw(ctx))
}

// scale reads an answer.
func scale(body []byte, err error) (*Scale, error) {
	if err != nil {
		return nil, err
	}
	s := &Scale{}
	if err := json.Unmarshal(body, s); err != nil {
		return nil, err
	}
	return s, nil
}
