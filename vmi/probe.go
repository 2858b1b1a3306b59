package vmi

import "k8s.io/apimachinery/pkg/util/intstr"

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
	Exec *ExecAction `json:"exec,omitempty"`

	// GuestAgentPing asks the guest's agent for a sign of life.
	// +optional
	GuestAgentPing *GuestAgentPing `json:"guestAgentPing,omitempty"`

	// HTTPGet asks a web server in the guest: a status from 200 to 399 is well.
	// It needs an interface on the pod network.
	// +optional
	HTTPGet *HTTPGetAction `json:"httpGet,omitempty"`

	// TCPSocket connects to a port of the guest: a connection is well. It needs
	// an interface on the pod network.
	// +optional
	TCPSocket *TCPSocketAction `json:"tcpSocket,omitempty"`
}

// GuestAgentPing has no settings.
type GuestAgentPing struct{}

// ExecAction runs a command.
type ExecAction struct {
	// Command is the program and its arguments. No shell is between.
	// +optional
	// +listType=atomic
	Command []string `json:"command,omitempty"`
}

// HTTPGetAction asks a web server for a page.
type HTTPGetAction struct {
	// Path is the page. Default: /.
	// +optional
	Path string `json:"path,omitempty"`

	// Port is the server's port, from 1 to 65535.
	Port intstr.IntOrString `json:"port"`

	// Host is the host to connect to. Default: the machine's address.
	// +optional
	Host string `json:"host,omitempty"`

	// Scheme is HTTP or HTTPS, whose certificate is not checked. Default: HTTP.
	// +optional
	Scheme URIScheme `json:"scheme,omitempty"`

	// HTTPHeaders are sent with the question.
	// +optional
	// +listType=atomic
	HTTPHeaders []HTTPHeader `json:"httpHeaders,omitempty"`
}

// HTTPHeader is a header of a question to a web server.
type HTTPHeader struct {
	// Name is the header's name.
	Name string `json:"name"`

	// Value is the header's value.
	Value string `json:"value"`
}

// URIScheme is how a web server is talked to.
type URIScheme string

// The ways to talk to a web server. The zero value stands for HTTP.
const (
	URISchemeHTTP  URIScheme = "HTTP"
	URISchemeHTTPS URIScheme = "HTTPS"
)

// TCPSocketAction connects to a port.
type TCPSocketAction struct {
	// Port is the port, from 1 to 65535.
	Port intstr.IntOrString `json:"port"`

	// Host is the host to connect to. Default: the machine's address.
	// +optional
	Host string `json:"host,omitempty"`
}
