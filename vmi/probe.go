package vmi

import (
	corev1 "k8s.io/api/core/v1"
)

// Probe asks again and again whether the guest is well: exactly one of its
// handlers is set.
//
// +podvisor:exactlyOne:of=exec;guestAgentPing;httpGet;tcpSocket,message="a probe has exactly one handler"
type Probe struct {
	ProbeHandler `json:",inline"`

	// InitialDelaySeconds is how long after its start the guest is asked first,
	// in seconds. Default: 0.
	// +optional
	InitialDelaySeconds int32 `json:"initialDelaySeconds,omitempty"`

	// TimeoutSeconds is how long an answer may take, in seconds. Default: 1.
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`

	// PeriodSeconds is the time between two questions, in seconds. Default: 10.
	// +optional
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`

	// SuccessThreshold is how many good answers in a row make a guest well that
	// was not. Default: 1; a liveness probe knows no other value.
	// +optional
	SuccessThreshold int32 `json:"successThreshold,omitempty"`

	// FailureThreshold is how many bad answers in a row make a guest unwell that
	// was well. Default: 3.
	// +optional
	FailureThreshold int32 `json:"failureThreshold,omitempty"`
}

// ProbeHandler is how a probe asks. Exactly one field is set.
type ProbeHandler struct {
	// Exec runs a command in the guest, by its agent: 0 is well.
	// +optional
	Exec *corev1.ExecAction `json:"exec,omitempty"`

	// GuestAgentPing asks the guest's agent for a sign of life.
	// +optional
	GuestAgentPing *GuestAgentPing `json:"guestAgentPing,omitempty"`

	// HTTPGet asks a web server in the guest: a status from 200 to 399 is well.
	// It needs an interface on the pod network.
	// +optional
	// +podvisor:refused:protocol=KubeVirt's API does not have the field
	HTTPGet *corev1.HTTPGetAction `json:"httpGet,omitempty"`

	// TCPSocket connects to a port of the guest: a connection is well. It needs
	// an interface on the pod network.
	// +optional
	TCPSocket *corev1.TCPSocketAction `json:"tcpSocket,omitempty"`
}

// GuestAgentPing has no settings.
type GuestAgentPing struct{}
