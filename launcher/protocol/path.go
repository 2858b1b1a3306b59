package protocol

import (
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// StreamUpgrade is what the connection of a [Stream] is upgraded to.
const StreamUpgrade = "podvisor-stream"

// The segments of paths. A change that an older peer would misread gets another version.
const (
	version    = "v1"
	namespaces = "namespaces"
	instances  = "instances"
	calls      = "calls"
	streams    = "streams"
)

// podQuery is the name of the UID of a pod in the query of a request. Without one the
// request is of the release before, and is about the pod that the VMI runs in.
const podQuery = "pod"

// migrationQuery is the name of the UID of a migration in the query of a request.
const migrationQuery = "migration"

// Target is the launcher that a request to a handler is for.
type Target struct {
	// Namespace, Name and UID are those of its VMI. An empty UID is that of any VMI of
	// the name.
	Namespace, Name string
	UID             types.UID
	// Pod is the UID of its pod. Empty: the pod that the VMI runs in.
	Pod types.UID
}

// Key is the key of its VMI.
func (t Target) Key() string { return t.Namespace + "/" + t.Name }

// Path is the path of a request that makes a call or opens a stream: to a handler about
// its Target, or without one to a launcher, which has one VMI.
type Path struct {
	// Target is the VMI, in a request to a handler. Zero: the request is to a launcher.
	Target Target
	// Call and Stream are what is asked for. One of them is empty.
	Call   Call
	Stream Stream
	// Migration is the UID of the migration that the handler of its source asks for, by its
	// certificate and without a token. Empty: the request is virt-controller's.
	Migration types.UID
}

// String is the path as it is sent, escaped, with its query.
func (p Path) String() string {
	kind, what := calls, string(p.Call)
	if p.Stream != "" {
		kind, what = streams, string(p.Stream)
	}
	segments := []string{version}
	if t := p.Target; t != (Target{}) {
		segments = append(segments, namespaces, t.Namespace, instances, t.Name, string(t.UID))
	}
	path := ""
	for _, s := range append(segments, kind, what) {
		path += "/" + url.PathEscape(s)
	}
	query := url.Values{}
	for name, uid := range map[string]types.UID{podQuery: p.Target.Pod, migrationQuery: p.Migration} {
		if uid != "" {
			query.Set(name, string(uid))
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path
}

// ParsePath reads a path as it was sent, escaped, with its query. It is not ok for one that names no call
// and no stream, as that of a newer peer may. Whether there is such a call, stream or VMI
// is not asked.
func ParsePath(escaped string) (p Path, ok bool) {
	escaped, query, _ := strings.Cut(escaped, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return Path{}, false
	}
	s := strings.Split(escaped, "/")
	for i := range s {
		var err error
		if s[i], err = url.PathUnescape(s[i]); err != nil || i > 0 && s[i] == "" {
			return Path{}, false
		}
	}
	if len(s) < 2 || s[0] != "" || s[1] != version {
		return Path{}, false
	}
	if s = s[2:]; len(s) == 7 && s[0] == namespaces && s[2] == instances {
		p.Target, s = Target{Namespace: s[1], Name: s[3], UID: types.UID(s[4]), Pod: types.UID(values.Get(podQuery))}, s[5:]
		p.Migration = types.UID(values.Get(migrationQuery))
	}
	switch {
	case len(s) != 2:
		return Path{}, false
	case s[0] == calls:
		p.Call = Call(s[1])
	case s[0] == streams:
		p.Stream = Stream(s[1])
	default:
		return Path{}, false
	}
	return p, true
}
