package verb

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/internal/vmi/bounds"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/instancetype"
)

// The resources that verbs are of.
const (
	VMs  = "virtualmachines"
	VMIs = "virtualmachineinstances"
	// Expand is a resource and a verb: the VM is in the body of the request.
	Expand = "expand-vm-spec"
)

// The methods of verbs.
const (
	Get = "GET"
	Put = "PUT"
)

// Role is the least of the roles of users that may call a verb. Each of view, edit and
// admin may what the one before it may.
type Role string

// The roles.
const (
	View    Role = "view"
	Edit    Role = "edit"
	Admin   Role = "admin"
	Migrate Role = "migrate"
)

// Source is what a decision reads.
type Source string

// The sources. The verb names the VM, the VMI, or both by one name.
const (
	VM  Source = "VM"
	VMI Source = "VMI"
	// Node is the node that the VMI is on, or is to leave.
	Node Source = "node"
)

// The largest bodies of requests, in bytes.
const (
	// NoBody: the body is not read.
	NoBody = 0
	// Options is the size of a body with options.
	Options = 8 << 10
	// Object is the size of a body with an object.
	Object = bounds.MaxBytes
)

// Verb is what is served at a subresource.
type Verb struct {
	// Resource is what the verb is of, and Subresource its path below the object. Empty:
	// the resource is the verb.
	Resource, Subresource string
	// Method is how it is called, and Code the status of success.
	Method string
	Code   int
	// Role is the least role that allows it.
	Role Role
	// Body is how much of the body is read, in bytes.
	Body int
	// Reads is what [Verb.Decide] is given.
	Reads []Source
	// Tail says what may follow the subresource in the path. Empty: nothing.
	Tail string
	// Agent says that the guest's agent answers it, which may take long.
	Agent bool
	// Once says that the verb does something again when it is called again.
	Once bool
	// Words says that clients show the words of an answer with 500 alone.
	Words bool
	// Answer makes what the launcher's answer is decoded into. Nil: it has none.
	Answer func() any
	// Decide says what a request does. An error is the answer of one that is refused.
	Decide func(Observed) (Plan, error)
}

// Path is the verb as discovery and roles name it, as "virtualmachines/start".
func (v Verb) Path() string { return strings.TrimSuffix(v.Resource+"/"+v.Subresource, "/") }

// Needs reports whether a decision reads the source.
func (v Verb) Needs(s Source) bool { return slices.Contains(v.Reads, s) }

// Observed is what a verb is decided on.
type Observed struct {
	// Namespace and Name are those of the request.
	Namespace, Name string
	// Body is the body of the request, and Tail what follows the verb in its path.
	Body []byte
	Tail []string
	// Keep says that an open screen stays with who has it: preserveSession.
	Keep bool
	// VM and VMI have the name. Nil: there is none, or it is not read.
	VM  *vmi.VirtualMachine
	VMI *vmi.VirtualMachineInstance
	// Taints are those of the node, and Drain the key of the taint of a node that is
	// drained.
	Taints []corev1.Taint
	Drain  string
	// Defaults complete a VM that is expanded, and Lookup reads what it names.
	Defaults defaults.Profile
	Lookup   instancetype.Lookup
	// Now is the present time.
	Now time.Time
}

// Plan is what a request does. Patches are made in their order, then the migration is
// created, the launcher is called, or a stream is opened.
type Plan struct {
	Patches []Patch
	// Migration is what is created. DryRun is empty or ["All"]. Nil: nothing.
	Migration *vmi.VirtualMachineInstanceMigration
	DryRun    []string
	// Call is what the launcher is called with, under the name of the verb's subresource.
	// Nil: it is not called.
	Call *Call
	// Stream is what is opened. Nil: nothing.
	Stream *Stream
	// Answer is what is answered, as JSON. Nil: that of the call, or nothing.
	Answer any
}

// Call is a call of the launcher.
type Call struct {
	// Options are sent as JSON. Nil: none.
	Options any
}

// Stream is a stream from a guest.
type Stream struct {
	// Name is the launcher's name of the stream. Empty: it is a port.
	Name string
	// Port is the port, of the network tcp or udp.
	Port    uint16
	Network string
}

// table are the verbs by noun.
var table = slices.Concat(power, guest, streams, evacuation, expansion)

// All are the verbs, in no order that matters.
func All() []Verb { return slices.Clone(table) }

// Find finds the verb of a subresource.
func Find(resource, subresource string) (Verb, bool) {
	i := slices.IndexFunc(table, func(v Verb) bool { return v.Resource == resource && v.Subresource == subresource })
	if i < 0 {
		return Verb{}, false
	}
	return table[i], true
}
