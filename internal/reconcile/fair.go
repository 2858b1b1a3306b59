package reconcile

import (
	"strings"

	"k8s.io/client-go/util/workqueue"
)

// fair is a queue of keys in which the namespaces take turns: however many keys of
// one namespace wait, a key of another one waits for one of each namespace at most.
type fair struct {
	keys  map[string][]string // by namespace
	turns []string            // the namespaces that have keys, the next one first
	len   int
}

var _ workqueue.Queue[string] = (*fair)(nil)

func newFair() *fair { return &fair{keys: map[string][]string{}} }

// Touch implements workqueue.Queue. A key that waits keeps its place.
func (*fair) Touch(string) {}

// Push implements workqueue.Queue.
func (f *fair) Push(key string) {
	ns, _, _ := strings.Cut(key, "/")
	if len(f.keys[ns]) == 0 {
		f.turns = append(f.turns, ns)
	}
	f.keys[ns] = append(f.keys[ns], key)
	f.len++
}

// Len implements workqueue.Queue.
func (f *fair) Len() int { return f.len }

// Pop implements workqueue.Queue. There is a key.
func (f *fair) Pop() string {
	ns := f.turns[0]
	f.turns = f.turns[1:]
	key := f.keys[ns][0]
	f.keys[ns] = f.keys[ns][1:]
	f.len--
	if len(f.keys[ns]) > 0 {
		f.turns = append(f.turns, ns)
	} else {
		delete(f.keys, ns)
	}
	return key
}
