package stream

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

const (
	// mostHeader is the longest head of a request or response, in bytes. A token of a
	// service account has about 1.5 KiB.
	mostHeader = 16 << 10
	// mostRefusal is how much of the body of a refusal is read, in bytes.
	mostRefusal = 8 << 10
	// openTimeout is how long it may take to open a stream.
	openTimeout = 15 * time.Second
)

// Audience is what a token for the handler of the node is issued for.
func Audience(node string) string { return audiencePrefix + node }

const audiencePrefix = "handler.podvisor.io/"

// CertificateAnnotation is the annotation of a node that has the hash of the certificate
// of its handler: [Certificate.Hash].
const CertificateAnnotation = "podvisor.io/stream-certificate"

// target is the launcher in the pod of the VMI. A handler of the release before does not read
// the pod, and asks the launcher of the VMI's pod on its node.
func target(v *vmi.VirtualMachineInstance, pod types.UID) protocol.Target {
	return protocol.Target{Namespace: v.Namespace, Name: v.Name, UID: v.UID, Pod: pod}
}

// refusal is an error of this package as the API server's clients can be shown it.
func refusal(reason, format string, args ...any) *vmi.Refusal {
	return &vmi.Refusal{Finding: vmi.Finding{Reason: reason, Message: fmt.Sprintf(format, args...)}}
}

// readRefusal reads the finding of a response.
func readRefusal(r io.Reader, status string) *vmi.Refusal {
	var f vmi.Finding
	if json.NewDecoder(io.LimitReader(r, mostRefusal)).Decode(&f) != nil || f.Reason == "" {
		f = vmi.Finding{Reason: protocol.ReasonUnavailable, Message: "virt-handler answers " + status}
	}
	return &vmi.Refusal{Finding: f}
}
