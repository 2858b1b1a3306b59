package fault

import (
	"slices"
	"strings"
	"time"
)

// Kind is a kind of fault.
type Kind string

// The kinds of faults that are injected between a component and the API server.
const (
	// Refused: nothing listens at the API server's address for a second, and all
	// connections are closed.
	Refused Kind = "refused"
	// Unavailable: the request is answered 503, and does nothing.
	Unavailable Kind = "unavailable"
	// Lost: the write is applied, and its connection is closed without an answer.
	Lost Kind = "lost"
	// Conflict: the write is answered 409, and does nothing.
	Conflict Kind = "conflict"
	// Throttled: all requests are answered 429 with Retry-After for a second.
	Throttled Kind = "throttled"
	// Expired: the watch ends with 410 in the place of an event, or is answered so.
	Expired Kind = "expired"
	// Delayed: the request reaches the API server after 5 seconds.
	Delayed Kind = "delayed"
	// Webhook: the component does not answer reviews of the API server for 2 seconds.
	Webhook Kind = "webhook"
	// Token: the component's token is refused with 401, until it has another one a second
	// later.
	Token Kind = "token"
	// Certificate: the API server shows a certificate that has expired, for 2 seconds.
	Certificate Kind = "certificate"
	// Stale: the watches of the resource bring nothing for 3 seconds.
	Stale Kind = "stale"
	// Killed: the component is killed before the request reaches the API server.
	Killed Kind = "killed"
	// KilledAfter: the component is killed when the write is applied, before its answer.
	KilledAfter Kind = "killed-after"
	// Stopped: the component is stopped for 3 seconds when the request is applied, before
	// its answer.
	Stopped Kind = "stopped"
	// Frozen: the launchers of the node are stopped for 3 seconds, from before the request
	// reaches the API server.
	Frozen Kind = "frozen"
	// Replaced: the component is stopped before the write reaches the API server, for so
	// long that another one has taken the lead; then the write arrives, and the component goes on.
	Replaced Kind = "replaced"
	// OutOfMemory: the kernel kills the processes of a launcher's pod for lack of memory, at a
	// state of its VMI and not at a request. Killed and Stopped are also of such states.
	OutOfMemory Kind = "out-of-memory"
	// Removed: a launcher's pod is deleted without a grace period, at a state of its VMI.
	Removed Kind = "removed"
)

// How long faults last.
const (
	refusedFor     = time.Second
	throttledFor   = time.Second
	delayedBy      = 5 * time.Second
	webhookFor     = 2 * time.Second
	tokenFor       = time.Second
	certificateFor = 2 * time.Second
	staleFor       = 3 * time.Second
	stoppedFor     = 3 * time.Second
)

// Kinds are all of them. Frozen is for components that have launchers, Replaced for those
// that have a leader, OutOfMemory for launchers, and Removed for their pods.
var Kinds = []Kind{
	Refused, Unavailable, Lost, Conflict, Throttled, Expired, Delayed, Webhook, Token, Certificate, Stale,
	Killed, KilledAfter, Stopped, Frozen, Replaced, OutOfMemory, Removed,
}

// At reports whether the fault can be injected at the step.
func (k Kind) At(s Step) bool {
	lease := strings.HasSuffix(s.Name, " leases")
	switch k {
	case OutOfMemory, Removed:
		return false // they are none of requests
	case Webhook:
		return s.is(review)
	case Expired:
		return s.is(event, "watch")
	case Stale:
		return s.is(event)
	case Lost, Conflict, KilledAfter:
		return s.is("create", "update", "patch", "delete")
	case Replaced:
		return s.is("create", "update", "patch", "delete") && !lease
	default:
		return !s.is(event, review)
	}
}

// names reports whether the step has this in its name.
func (s Step) names(text string) bool { return strings.Contains(s.Name, text) }

// is reports whether the step has one of the verbs.
func (s Step) is(verbs ...string) bool {
	verb, _, _ := strings.Cut(s.Name, " ")
	return slices.Contains(verbs, verb)
}
