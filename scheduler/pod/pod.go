package pod

import (
	"cmp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/served"
	"github.com/podvisor/podvisor/vmi/validate"
)

// Render returns the pod that the VMI runs in, or that it moves to by the role. Defaults are applied, and a VMI
// that is wrong, or that asks for what this build does not serve, gives an error
// that wraps [vmi.ErrInvalid] and lists every fault. The input is not changed.
func Render(v *vmi.VirtualMachineInstance, c Config) (*corev1.Pod, error) {
	unserved := served.Faults(v, c.profile())
	v = defaults.Instance(v, c.profile()) // a copy: the pod may hold parts of it
	faults := validate.Instance(v, validate.User{Kind: validate.Controller}, c.limits())
	faults = append(faults, besides(faults, unserved)...)
	faults = append(faults, besides(faults, unpermitted(&v.Spec.Domain, c))...)
	faults = append(faults, besides(faults, wrongResources(v, c))...)
	faults = append(faults, wrongRole(c.Role)...)
	if err := validate.Error(faults); err != nil {
		return nil, err
	}
	if err := c.imageFault(v); err != nil {
		return nil, err
	}
	storage, err := volumes(v, c)
	if err != nil {
		return nil, err
	}
	memory := c.overhead(guest(v, c))
	meta := Metadata(v, c.Role)
	meta.Annotations[launched.OverheadAnnotation] = strconv.FormatInt(memory.Value(), 10)
	delete(meta.Annotations, launched.BuildAnnotation) // of the VMI
	if c.Build != "" {
		meta.Annotations[launched.BuildAnnotation] = c.Build
	}
	if layout := c.move().Layout; layout != "" {
		meta.Annotations[vmi.PCITopologyAnnotation] = layout
	}
	if translated(&v.Spec, c) {
		meta.Annotations[istioAnnotation], meta.Annotations[legacyIstioAnnotation] = network.PodBridge, network.PodBridge
	}
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: meta,
		Spec: corev1.PodSpec{
			InitContainers:                slices.Concat(initContainers(storage.Init, c, dedicated(&v.Spec.Domain)), shares(storage.Shares, v, c)),
			Containers:                    []corev1.Container{compute(v, c, memory, storage)},
			Volumes:                       storage.Volumes,
			ImagePullSecrets:              storage.PullSecrets,
			NodeSelector:                  nodeSelector(v, c),
			Affinity:                      apart(v, c.Role, affinity(v, c)),
			Tolerations:                   v.Spec.Tolerations,
			TopologySpreadConstraints:     v.Spec.TopologySpreadConstraints,
			PriorityClassName:             v.Spec.PriorityClassName,
			SchedulerName:                 v.Spec.SchedulerName,
			Hostname:                      v.Hostname(),
			Subdomain:                     v.Spec.Subdomain,
			DNSPolicy:                     v.Spec.DNSPolicy,
			DNSConfig:                     v.Spec.DNSConfig,
			ServiceAccountName:            cmp.Or(v.Spec.ServiceAccountName, storage.Account),
			SecurityContext:               podSecurity(),
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: new(int64((v.GracePeriod() + podGrace).Seconds())),
			EnableServiceLinks:            new(false),
			ReadinessGates:                []corev1.PodReadinessGate{{ConditionType: vmi.PodConditionUnpaused}},
			AutomountServiceAccountToken:  new(false),
		},
	}, nil
}

// besides are the faults of l in fields that have none in first.
func besides(first, l field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(l, func(e *field.Error) bool {
		return slices.ContainsFunc(first, func(o *field.Error) bool { return o.Field == e.Field })
	})
}
