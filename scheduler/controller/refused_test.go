package controller

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/scheduler/instance"
)

func TestAPodThatALimitRangeRefusesIsSaidWithTheFieldToSet(t *testing.T) {
	t.Parallel()
	limited := func(p *corev1.Pod) *corev1.Pod {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")}
		return p
	}
	above := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", field.ErrorList{
		field.Invalid(field.NewPath("spec", "containers").Index(0).Child("resources", "requests"), "1164Mi", "must be less than or equal to memory limit of 512Mi"),
	})
	forbidden := func(text string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New(text))
	}
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		err  error
		says string
	}{
		"a default limit below what the guest needs": {launcher(t), above, ". A LimitRange of namespace ns sets this limit, since the VMI has none of its own: write spec.domain.resources.limits.memory, " +
			"which is at least what the guest has; see kubectl -n ns describe limitrange"},
		"a limit of the VMI's own": {limited(launcher(t)), above, ""},
		"a maximum": {launcher(t), forbidden("maximum memory usage per Container is 1Gi, but limit is 2Gi"), ". A LimitRange of namespace ns says so: " +
			"change spec.domain.memory, spec.domain.cpu or spec.domain.resources of the VMI, or the LimitRange; see kubectl -n ns describe limitrange"},
		"a quota":                     {launcher(t), forbidden("exceeded quota: pods, requested: pods=1, used: pods=1, limited: pods=1"), ""},
		"no answer of the API server": {launcher(t), errors.New("maximum cpu usage per Pod is 1"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.pod.Namespace = "ns"
			f := podRefused(tt.pod, tt.err)
			require.Equal(t, instance.FailedCreate, f.Reason)
			require.Equal(t, tt.err.Error()+tt.says, f.Message)
		})
	}
}
