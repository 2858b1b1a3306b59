package apiserver

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// limits are what refuses pods, and how it is lifted.
var limits = map[string]struct{ set, lift func(space) error }{
	"a quota that is raised": {setQuota, func(s space) error { return s.quota("1000") }},
	"a quota that is deleted": {setQuota, func(s space) error {
		return world.kube.CoreV1().ResourceQuotas(s.name).Delete(s.t.Context(), "pods", metav1.DeleteOptions{})
	}},
	"a range of limits that is deleted": {
		func(s space) error {
			_, err := world.kube.CoreV1().LimitRanges(s.name).Create(s.t.Context(), &corev1.LimitRange{
				ObjectMeta: metav1.ObjectMeta{Name: "pods"},
				Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
					Type: corev1.LimitTypePod, Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")},
				}}},
			}, metav1.CreateOptions{})
			return err
		},
		func(s space) error {
			return world.kube.CoreV1().LimitRanges(s.name).Delete(s.t.Context(), "pods", metav1.DeleteOptions{})
		},
	},
}

func setQuota(s space) error {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "pods"}}
	if _, err := world.kube.CoreV1().ResourceQuotas(s.name).Create(s.t.Context(), q, metav1.CreateOptions{}); err != nil {
		return err
	}
	return s.quota("0")
}

// quota writes how many pods may be, in the spec and, as no controller does it
// here, in the status.
func (s space) quota(pods string) error {
	quotas := world.kube.CoreV1().ResourceQuotas(s.name)
	q, err := quotas.Get(s.t.Context(), "pods", metav1.GetOptions{})
	if err != nil {
		return err
	}
	q.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}
	if q, err = quotas.Update(s.t.Context(), q, metav1.UpdateOptions{}); err != nil {
		return err
	}
	q.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}
	_, err = quotas.UpdateStatus(s.t.Context(), q, metav1.UpdateOptions{})
	return err
}

// refuses waits until no pod is accepted.
func (s space) refuses() {
	s.t.Helper()
	probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(1000)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{
			Name: "c", Image: "example/x", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
		}},
	}}
	eventually(s.t, func() error {
		_, err := s.pods.Create(s.t.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) {
			return nil
		}
		return errors.Join(errors.New("pods are accepted"), err)
	})
}

// tries are how many of the writes tried to create a pod.
func tries(writes []string) int {
	n := 0
	for _, w := range writes {
		if strings.HasPrefix(w, "POST pods ") {
			n++
		}
	}
	return n
}

func TestVMIsThatWaitForAQuotaCostLittleAndGoOnWhenItIsLifted(t *testing.T) {
	t.Parallel()
	const n = 50
	for name, limit := range limits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			require.NoError(t, limit.set(s))
			s.refuses()
			s.control()
			for i := range n {
				s.create(guest(fmt.Sprintf("vm%d", i)))
			}
			for i := range n {
				s.awaitReason(fmt.Sprintf("vm%d", i), vmi.ConditionSynchronized, "FailedCreate")
			}
			before, began := len(s.writes.all()), time.Now()
			time.Sleep(10 * time.Second)
			s.writesMore(before)
			after := s.writes.all()[before:]
			again := tries(after)
			require.LessOrEqual(t, again, 2+int(3*time.Since(began).Seconds()), "a few in each two seconds, however many wait")
			require.Len(t, after, again, "no status is written again")

			require.NoError(t, limit.lift(s))
			lifted := time.Now()
			eventually(t, func() error { // the goal is 5 s
				l, err := s.pods.List(t.Context(), metav1.ListOptions{})
				if err == nil && len(l.Items) < n {
					err = fmt.Errorf("%d of %d pods", len(l.Items), n)
				}
				return err
			})
			t.Logf("%d tries in 10 s; all %d pods %s after the limit was lifted", again, n, time.Since(lifted).Round(time.Millisecond))
		})
	}
}

// An ordinary default limit is below what a guest needs. The API server names neither the
// LimitRange nor the field to set; what the VMI says is enough to start it.
func TestADefaultLimitBelowTheGuestsMemoryIsSaidWithItsWayOut(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	_, err := world.kube.CoreV1().LimitRanges(s.name).Create(t.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "usual"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("160Mi")},
		}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	s.controlVMs()
	small := guest("small")
	_, err = s.vmis.Create(t.Context(), small, metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, func() error {
		v, err := s.vmis.Get(t.Context(), "small", metav1.GetOptions{})
		if err != nil {
			return err
		}
		c := v.Status.Condition(vmi.ConditionReady)
		if c == nil || !strings.Contains(c.Message, "A LimitRange of namespace "+s.name+" sets this limit, since the VMI has none of its own: write spec.domain.resources.limits.memory") {
			return fmt.Errorf("the VMI does not say so: %+v", v.Status)
		}
		return nil
	})
	advised := guest("advised")
	advised.Spec.Domain.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: advised.Spec.Domain.GuestMemory()}
	made, err := s.vmis.Create(t.Context(), advised, metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, func() error {
		l, err := s.pods.List(t.Context(), metav1.ListOptions{LabelSelector: vmi.CreatedByLabel + "=" + string(made.UID)})
		if err == nil && len(l.Items) == 0 {
			err = errors.New("the VMI with the limit has no pod")
		}
		return err
	})
}
