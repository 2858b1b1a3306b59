package handler

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/storage/credential"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// agent makes the agent's conditions what is known of it: that it is connected,
// and whether the cluster supports its version. A version that is not known
// counts as supported.
func agent(o Observed, s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
	a := o.Session.State.Agent
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

// credentials is the condition of the keys and passwords that the agent writes, with
// an event when it changes.
func (p *Plan) credentials(v *vmi.VirtualMachineInstance, state *protocol.State, s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
	if state.Credentials == nil {
		s.RemoveCondition(vmi.ConditionAccessCredentialsSynchronized)
		return
	}
	c := vmi.Condition{
		Type: vmi.ConditionAccessCredentialsSynchronized, Status: corev1.ConditionTrue, Reason: vmi.ReasonCredentialsSynchronized,
		Message: "The guest's agent has written the keys and passwords of the access credentials",
	}
	if note := state.Credentials.Note; note != "" {
		c.Message += "; " + note
		if !credential.UsesAgent(v) {
			c.Message = "cloud-init has the SSH public keys of the access credentials; " + note
		}
	}
	e := normal(EventCredentialsSynchronized, c.Message)
	if why := state.Credentials.Failure; why != "" {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, vmi.ReasonCredentialsFailed, why
		e = warning(EventCredentialsFailed, why)
	}
	if old := s.Condition(c.Type); old != nil && old.Status == c.Status && old.Message == c.Message {
		return
	}
	s.SetCondition(c, now)
	p.Events = append(p.Events, e)
}

// noAgent removes the agent's conditions.
func noAgent(s *vmi.VirtualMachineInstanceStatus) {
	s.RemoveCondition(vmi.ConditionAgentConnected)
	s.RemoveCondition(vmi.ConditionAgentVersionNotSupported)
}

// frozen is what the status says about the file systems of the guest.
func frozen(state *protocol.State) string {
	if state.Frozen {
		return "frozen"
	}
	return ""
}
