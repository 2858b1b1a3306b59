package bench

import (
	"io"
	"strings"

	"github.com/podvisor/podvisor/e2e/audit"
)

// countWrites counts the writes by Podvisor's components for the VMI of
// this name in an audit log: those of objects, also the ones that were refused,
// and those of events.
func countWrites(log io.Reader, namespace, name string) (objects, events int, err error) {
	err = eachWrite(log, namespace, func(e audit.Entry) {
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
	err := eachWrite(log, namespace, func(e audit.Entry) {
		component := e.User.Username[strings.LastIndex(e.User.Username, ":")+1:]
		what := ": " + e.What()
		if e.ObjectRef.Resource == "events" {
			what = " events"
		}
		counts[component+what]++
	})
	return counts, err
}

// eachWrite calls f for each write by Podvisor's components in the namespace in an
// audit log.
func eachWrite(log io.Reader, namespace string, f func(audit.Entry)) error {
	return audit.Each(log, func(e audit.Entry) {
		if byPodvisor(e) && isWrite(e) && e.Complete() && e.ObjectRef.Namespace == namespace {
			f(e)
		}
	})
}

func byPodvisor(e audit.Entry) bool {
	return strings.HasPrefix(e.User.Username, "system:serviceaccount:kubevirt:")
}

func isWrite(e audit.Entry) bool {
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
