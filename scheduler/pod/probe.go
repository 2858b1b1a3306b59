package pod

import (
	"math"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

const (
	// startDelay is what a probe waits besides its own delay: the guest is started by
	// the launcher, after the container.
	startDelay = 10
	// agentDelay is what a probe by the guest's agent may take besides its own timeout:
	// the process that asks the agent has to end in time.
	agentDelay = 1
	// arrivalTimeout is how long one startup probe waits for a guest that moves. Each that
	// fails is an event, and the next one begins.
	arrivalTimeout = 5 * time.Minute
)

// readiness is the readiness probe of the container compute in this role. Nil: it has none. A
// target begins it at once: its guest has booted elsewhere.
func readiness(v *vmi.VirtualMachineInstance, r Role) *corev1.Probe {
	p := v.Spec.ReadinessProbe
	if p == nil {
		return nil
	}
	out := probe(v, p)
	if r.Name == vmi.RoleTarget {
		out.InitialDelaySeconds = 0
	}
	return out
}

// liveness is the liveness probe of the container compute. Nil: it has none.
func liveness(v *vmi.VirtualMachineInstance) *corev1.Probe {
	if p := v.Spec.LivenessProbe; p != nil {
		return probe(v, p)
	}
	return nil
}

// startup is the startup probe of the container compute. A target has one if a probe asks the
// address of the guest: nothing answers there until the guest has arrived. The kubelet asks no
// other probe before this one has succeeded, and the one of readiness at once then. Nil: it has
// none.
func startup(v *vmi.VirtualMachineInstance, r Role) *corev1.Probe {
	if r.Name != vmi.RoleTarget || !byAddress(v.Spec.LivenessProbe) && !byAddress(v.Spec.ReadinessProbe) {
		return nil
	}
	return &corev1.Probe{
		ProbeHandler:     execProbe([]string{"arrived", "--timeout", arrivalTimeout.String()}),
		TimeoutSeconds:   int32(arrivalTimeout.Seconds()) + agentDelay,
		PeriodSeconds:    1,
		FailureThreshold: math.MaxInt32, // a migration has its own timeouts
	}
}

// probe is a VMI's probe for the container compute. The guest has the address of the
// pod, so that HTTP and TCP stay as they are.
func probe(v *vmi.VirtualMachineInstance, p *vmi.Probe) *corev1.Probe {
	out := &corev1.Probe{
		ProbeHandler:        corev1.ProbeHandler{HTTPGet: p.HTTPGet, TCPSocket: p.TCPSocket},
		InitialDelaySeconds: p.InitialDelaySeconds + startDelay,
		TimeoutSeconds:      p.TimeoutSeconds,
		PeriodSeconds:       p.PeriodSeconds,
		SuccessThreshold:    p.SuccessThreshold,
		FailureThreshold:    p.FailureThreshold,
	}
	if !byAgent(p) {
		return out
	}
	out.TimeoutSeconds += agentDelay
	timeout := (time.Duration(p.TimeoutSeconds) * time.Second).String()
	question, command := "ping", []string(nil)
	if p.Exec != nil {
		question, command = "exec", append([]string{"--"}, asWritten(p.Exec.Command)...)
	}
	out.ProbeHandler = execProbe(append([]string{question, "--namespace", v.Namespace, "--name", v.Name, "--timeout", timeout}, command...))
	return out
}

// asWritten is a command that the kubelet, which replaces $(NAME) and $$, makes again
// what it was.
func asWritten(command []string) []string {
	out := make([]string, len(command))
	for i, c := range command {
		out[i] = strings.ReplaceAll(c, "$", "$$")
	}
	return out
}

// execProbe asks the launcher's program in the container.
func execProbe(question []string) corev1.ProbeHandler {
	return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: append([]string{launcherPath, "probe"}, question...)}}
}

// byAgent says that a probe asks the agent in the guest. It needs a process in the
// container.
func byAgent(p *vmi.Probe) bool { return p != nil && (p.Exec != nil || p.GuestAgentPing != nil) }

// byAddress says that the kubelet asks the address of the guest.
func byAddress(p *vmi.Probe) bool { return p != nil && !byAgent(p) }

// processProbes is how many probes of the VMI's pod in this role are processes in the
// container.
func processProbes(v *vmi.VirtualMachineInstance, r Role) int {
	n := 0
	if startup(v, r) != nil {
		n++
	}
	for _, p := range []*vmi.Probe{v.Spec.ReadinessProbe, v.Spec.LivenessProbe} {
		if byAgent(p) {
			n++
		}
	}
	return n
}
