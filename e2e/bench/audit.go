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
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// countWrites counts the writes by Podvisor's components for the VMI of
// this name in an audit log: those of objects, also the ones that were refused,
// and those of events.
func countWrites(log io.Reader, namespace, name string) (objects, events int, err error) {
	lines := bufio.NewScanner(log)
	lines.Buffer(make([]byte, 1<<20), 1<<20)
	for lines.Scan() {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return 0, 0, err
		}
		if !e.byPodvisor() || !e.write() || e.Stage != "ResponseComplete" || e.ObjectRef.Namespace != namespace {
			continue
		}
		switch o := e.ObjectRef; {
		case o.Resource == "events":
			events += b2i(strings.HasPrefix(o.Name, name+"."))
		case o.Name == name, strings.HasPrefix(o.Name, "virt-launcher-"+name+"-"):
			objects++
		}
	}
	return objects, events, lines.Err()
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
