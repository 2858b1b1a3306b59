package stream

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

const (
	// mostHeader is the longest head of a request, in bytes. A token of a
	// service account has about 1.5 KiB.
	mostHeader = 16 << 10
	// mostToRead is how long a handshake, and then a request, may take to be read: a busy peer
	// sends the head seconds after the handshake.
	mostToRead = 30 * time.Second
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

// refused is the error of a refusal, which a [denied] has too.
func refused(status int, f vmi.Finding) error {
	if f.Reason == "" {
		f = vmi.Finding{Reason: protocol.ReasonUnavailable, Message: fmt.Sprintf("virt-handler answers %d %s", status, http.StatusText(status))}
	}
	r := &vmi.Refusal{Finding: f}
	if status == http.StatusUnauthorized {
		return denied{r}
	}
	return r
}

// denied is the error of a handler that does not take the token.
type denied struct{ *vmi.Refusal }

// Unwrap is the refusal.
func (d denied) Unwrap() error { return d.Refusal }
