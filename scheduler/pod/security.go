package pod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// podSecurity makes every process of the pod an ordinary user behind the
// runtime's system call filter: what PodSecurity "restricted" asks for.
func podSecurity() *corev1.PodSecurityContext {
	return &corev1.PodSecurityContext{
		RunAsUser:      new(int64(vmi.RuntimeUID)),
		RunAsGroup:     new(int64(vmi.RuntimeUID)),
		FSGroup:        new(int64(vmi.RuntimeUID)),
		RunAsNonRoot:   new(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// containerSecurity is the security of every container of ours.
func containerSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsUser:                new(int64(vmi.RuntimeUID)),
		RunAsGroup:               new(int64(vmi.RuntimeUID)),
		RunAsNonRoot:             new(true),
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// computeSecurity adds the one capability that "restricted" lets a container
// have. An ordinary user does not get it in effect: clients look for it, and
// DHCP is served on port 67 because the runtime allows it
// (ip_unprivileged_port_start).
func computeSecurity() *corev1.SecurityContext {
	s := containerSecurity()
	s.Capabilities.Add = []corev1.Capability{"NET_BIND_SERVICE"}
	return s
}
