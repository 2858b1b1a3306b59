package handler

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// agent is what is known of the guest's agent: that it is there, and whether the
// cluster complains about its version. One that does not tell its version is not
// complained about.
func agent(o Observed, s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
	a := o.Link.Guest.Agent
	if a == nil {
		noAgent(s)
		return
	}
	s.SetCondition(vmi.Condition{Type: vmi.ConditionAgentConnected, Status: corev1.ConditionTrue}, now)
	if a.Version == "" || o.Agents.Support(a.Version) {
		s.RemoveCondition(vmi.ConditionAgentVersionNotSupported)
		return
	}
	s.SetCondition(vmi.Condition{
		Type: vmi.ConditionAgentVersionNotSupported, Status: corev1.ConditionTrue, Reason: "VersionNotSupported",
		Message: fmt.Sprintf("The guest's agent has version %s; supported are %s", a.Version, o.Agents),
	}, now)
}

// noAgent takes back what was said of an agent.
func noAgent(s *vmi.VirtualMachineInstanceStatus) {
	s.RemoveCondition(vmi.ConditionAgentConnected)
	s.RemoveCondition(vmi.ConditionAgentVersionNotSupported)
}
