package client

import (
	"context"
	"encoding/json"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// GetScale returns the scale of the object: how many replicas are desired and how many
// there are, in the form that autoscalers use. It is NotFound if the kind has no
// subresource scale.
func (c Objects[T, L]) GetScale(ctx context.Context, name string, opts metav1.GetOptions) (*autoscalingv1.Scale, error) {
	return scale(c.one(c.rest.Get(), &opts, name, "scale").Do(ctx))
}

// UpdateScale sets the number of replicas that are desired, and nothing else.
func (c Objects[T, L]) UpdateScale(ctx context.Context, name string, s *autoscalingv1.Scale, opts metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	typed := *s
	typed.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	body, err := json.Marshal(typed)
	if err != nil {
		return nil, err
	}
	return scale(c.one(c.rest.Put(), &opts, name, "scale").SetHeader("Content-Type", "application/json").Body(body).Do(ctx))
}

// scale reads an answer.
func scale(r rest.Result) (*autoscalingv1.Scale, error) {
	if err := r.Error(); err != nil {
		return nil, err
	}
	body, err := r.Raw()
	if err != nil {
		return nil, err
	}
	s := &autoscalingv1.Scale{}
	if err := json.Unmarshal(body, s); err != nil {
		return nil, err
	}
	return s, nil
}
