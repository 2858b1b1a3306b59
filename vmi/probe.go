package vmi

import (
	corev1 "k8s.io/api/core/v1"
)

// Probe checks periodically whether the guest is healthy: exactly one of its
// handlers is set.
//
// +podvisor:exactlyOne:of=exec;guestAgentPing;httpGet;tcpSocket,message="a probe has exactly one handler"
type Probe struct {
	ProbeHandler `json:",inline"`

	// InitialDelaySeconds is the time to the first check, in seconds, counted from
	// 10 seconds after the start of the pod's container. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	InitialDelaySeconds int32 `json:"initialDelaySeconds,omitempty"`

	// TimeoutSeconds is how long an answer may take, in seconds. Default: 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`

	// PeriodSeconds is the time between two checks, in seconds. Default: 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`

	// SuccessThreshold is how many successes in a row make an unhealthy guest
	// healthy. Default: 1, which is the only value for a liveness probe.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	SuccessThreshold int32 `json:"successThreshold,omitempty"`

	// FailureThreshold is how many failures in a row make a healthy guest
	// unhealthy. Default: 3.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	FailureThreshold int32 `json:"failureThreshold,omitempty"`
}

// ProbeHandler is how a probe checks. Exactly one field is set.
type ProbeHandler struct {
	// Exec runs a command in the guest, by its agent: exit status 0 is a success.
	// +optional
	Exec *corev1.ExecAction `json:"exec,omitempty"`

	// GuestAgentPing pings the guest's agent.
	// +optional
	GuestAgentPing *GuestAgentPing `json:"guestAgentPing,omitempty"`

	// HTTPGet sends a request to a web server in the guest: a status from 200 to
	// 399 is a success. It needs an interface on the pod network.
	// +optional
	// +podvisor:refused:protocol=KubeVirt's API does not have the field
	// +podvisor:unserved:host=a probe goes to the address of the VMI's pod, which the guest has
	HTTPGet *corev1.HTTPGetAction `json:"httpGet,omitempty"`

	// TCPSocket connects to a port of the guest: a connection is a success. It
	// needs an interface on the pod network.
	// +optional
	// +podvisor:unserved:host=a probe goes to the address of the VMI's pod, which the guest has
	TCPSocket *corev1.TCPSocketAction `json:"tcpSocket,omitempty"`
}

// GuestAgentPing has no settings.
type GuestAgentPing struct{}
