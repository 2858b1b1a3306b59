package controller

import (
	"errors"
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
)

// The API server gives these messages no other form. They are read to say what helps, and
// nothing is decided by what they say.
var (
	// aboveLimit is the fault of a container that asks for more of a resource than its
	// limit.
	aboveLimit = regexp.MustCompile(`must be less than or equal to (\S+) limit of (\S+)`)
	// outOfRange is what the admission plugin LimitRanger says of a pod.
	outOfRange = regexp.MustCompile(`(maximum|minimum) \S+ usage per (Container|Pod) is|\S+ max limit to request ratio per (Container|Pod) is`)
)

// podRefused is the finding that the API server does not accept the pod, with what helps if a
// LimitRange of the namespace is the cause, which the API server does not name.
func podRefused(p *corev1.Pod, err error) vmi.Finding {
	f := vmi.Finding{Reason: instance.FailedCreate, Message: err.Error()}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return f
	}
	look := fmt.Sprintf("; see kubectl -n %s describe limitrange", p.Namespace)
	if d := status.Status().Details; d != nil {
		for _, c := range d.Causes {
			m := aboveLimit.FindStringSubmatch(c.Message)
			if m == nil || hasLimit(p, corev1.ResourceName(m[1])) {
				continue // the limit is the VMI's own
			}
			f.Message += fmt.Sprintf(". A LimitRange of namespace %s sets this limit, since the VMI has none of its own: "+
				"write spec.domain.resources.limits.%s, which is at least what the guest has%s",
				p.Namespace, m[1], look)
			return f
		}
	}
	if outOfRange.MatchString(f.Message) {
		f.Message += fmt.Sprintf(". A LimitRange of namespace %s says so: change spec.domain.memory, "+
			"spec.domain.cpu or spec.domain.resources of the VMI, or the LimitRange%s", p.Namespace, look)
	}
	return f
}

// hasLimit says that the launcher's container was created with a limit of the resource.
func hasLimit(p *corev1.Pod, name corev1.ResourceName) bool {
	for _, c := range p.Spec.Containers {
		if _, ok := c.Resources.Limits[name]; ok && c.Name == vmi.ComputeContainer {
			return true
		}
	}
	return false
}
