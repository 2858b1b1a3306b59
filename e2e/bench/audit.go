package bench

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
)

// entry is what is read of a line of the API server's audit log.
type entry struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	User  struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource  string `json:"resource"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		// Subresource is status, for example, or nothing.
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// countWrites counts the writes by Podvisor's components for the VMI of
// this name in an audit log: those of objects, also the ones that were refused,
// and those of events.
func countWrites(log io.Reader, namespace, name string) (objects, events int, err error) {
	err = eachWrite(log, namespace, func(e entry) {
		switch o := e.ObjectRef; {
		case o.Resource == "events":
			events += b2i(strings.HasPrefix(o.Name, name+"."))
		case o.Name == name, strings.HasPrefix(o.Name, "virt-launcher-"+name+"-"):
			objects++
		}
	})
	return objects, events, err
}

// countEach counts the writes by Podvisor's components in the namespace in an audit log,
// by "component: verb resource", and those of events by "component events".
func countEach(log io.Reader, namespace string) (map[string]int, error) {
	counts := map[string]int{}
	err := eachWrite(log, namespace, func(e entry) {
		component := e.User.Username[strings.LastIndex(e.User.Username, ":")+1:]
		what := ": " + e.Verb + " " + e.ObjectRef.Resource
		switch {
		case e.ObjectRef.Resource == "events":
			what = " events"
		case e.ObjectRef.Subresource != "":
			what += "/" + e.ObjectRef.Subresource
		}
		counts[component+what]++
	})
	return counts, err
}

// eachWrite calls f for each write by Podvisor's components in the namespace in an
// audit log.
func eachWrite(log io.Reader, namespace string, f func(entry)) error {
	lines := bufio.NewScanner(log)
	lines.Buffer(make([]byte, 1<<20), 1<<20)
	for lines.Scan() {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return err
		}
		if e.byPodvisor() && e.write() && e.Stage == "ResponseComplete" && e.ObjectRef.Namespace == namespace {
			f(e)
		}
	}
	return lines.Err()
}

func (e entry) byPodvisor() bool {
	return strings.HasPrefix(e.User.Username, "system:serviceaccount:kubevirt:")
}

func (e entry) write() bool {
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
