package verb

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/podvisor/podvisor/vmi"
)

// The statuses of success, of a state that forbids a verb, and of a part that does not
// answer.
const (
	done        = 200
	accepted    = 202
	forbidden   = 409
	unavailable = 503
)

// The kinds as errors name them: in the singular.
var (
	OfVM  = schema.GroupResource{Group: vmi.GroupName, Resource: "virtualmachine"}
	OfVMI = schema.GroupResource{Group: vmi.GroupName, Resource: "virtualmachineinstance"}
)

// Of is the kind of the verb's objects as errors name it.
func (v Verb) Of() schema.GroupResource {
	if v.Resource == VMIs {
		return OfVMI
	}
	return OfVM
}

func conflict(of schema.GroupResource, name, format string, args ...any) error {
	return apierrors.NewConflict(of, name, fmt.Errorf(format, args...))
}

func bad(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

func internal(format string, args ...any) error {
	return apierrors.NewInternalError(fmt.Errorf(format, args...))
}

func status(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

// noVM and noVMI are the answers where an object is missing.
func noVM(o Observed) error  { return apierrors.NewNotFound(OfVM, o.Name) }
func noVMI(o Observed) error { return apierrors.NewNotFound(OfVMI, o.Name) }

// noReboot is why a guest cannot be asked for a reboot.
const noReboot = "VMI neither have the agent connected nor the ACPI feature enabled"

// NoWebsocket is the answer to a request that asks for a stream without an upgrade.
func (v Verb) NoWebsocket() error {
	return bad("%s is a websocket: send the headers of an upgrade", v.Subresource)
}

// NotCreated is the answer to a verb that creates an object which the API server does not
// take. Nil: it has.
func NotCreated(err error) error {
	if err == nil {
		return nil
	}
	return internal("%w", err)
}

// Refused is the answer to a verb whose call or stream a node or launcher refuses, or does
// not answer.
func (v Verb) Refused(i *vmi.VirtualMachineInstance, err error) error {
	what := v.Subresource
	var r *vmi.Refusal
	if !errors.As(err, &r) {
		var s apierrors.APIStatus
		if errors.As(err, &s) {
			return err
		}
		return status(unavailable, metav1.StatusReasonServiceUnavailable,
			fmt.Sprintf("%s of VMI %s/%s: node %s does not answer: %v; try again", what, i.Namespace, i.Name, i.Status.NodeName, err))
	}
	switch r.Reason {
	case vmi.RefusedBusy:
		switch {
		case what == screen:
			return conflict(OfVMI, i.Name, "Active VNC connection. Request denied.: end the other client, or connect without preserveSession")
		case v.Method == Put: // what else is done with the guest is in the way, and no client
			return conflict(OfVMI, i.Name, "%s", r.Message)
		}
		return conflict(OfVMI, i.Name, "another client has its %s: %s; end the other client, or try again", what, r.Message)
	case vmi.RefusedNoAgent:
		if what == softReboot {
			return conflict(OfVMI, i.Name, "%s", noReboot)
		}
		return conflict(OfVMI, i.Name, "VMI does not have guest agent connected: %s", r.Message)
	case vmi.RefusedNotFound:
		return conflict(OfVMI, i.Name, "it does not run on node %s: %s; read its status, and try again", i.Status.NodeName, r.Message)
	case vmi.RefusedUnknown:
		return conflict(OfVMI, i.Name, "its launcher does not know %s: %s; restart the VMI, which gives it the present launcher", what, r.Message)
	case vmi.RefusedMalformed, vmi.RefusedTooLarge:
		return bad("%s of VMI %s: %s", what, i.Name, r.Message)
	case vmi.RefusedUnavailable:
		return status(unavailable, metav1.StatusReasonServiceUnavailable, fmt.Sprintf("%s of VMI %s cannot be had now: %s; try again", what, i.Name, r.Message))
	}
	return internal("%s of VMI %s: %s", what, i.Name, r.Message)
}
