package controller

import (
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// errClaimed is the cause of an error about a network namespace that a launcher sent
// and that is another VMI's.
var errClaimed = errors.New("it is the network namespace of another VMI's pod")

// claimsKept is how many network namespaces are remembered. A node has at most some
// hundred pods at a time.
const claimsKept = 4096

// claims are which VMI each network namespace was bound for. The zero value is ready
// to use.
type claims struct {
	mu    sync.Mutex
	of    map[uint64]types.UID // by the cookie of the namespace
	order []uint64             // the oldest first
}

// claim notes that the namespace is that of the VMI, or returns an error if it is
// another's.
func (c *claims) claim(namespace uint64, vmi types.UID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if owner, ok := c.of[namespace]; ok {
		if owner != vmi {
			return errClaimed
		}
		return nil
	}
	if c.of == nil {
		c.of = map[uint64]types.UID{}
	}
	if len(c.order) >= claimsKept {
		delete(c.of, c.order[0])
		c.order = c.order[1:]
	}
	c.of[namespace] = vmi
	c.order = append(c.order, namespace)
	return nil
}
