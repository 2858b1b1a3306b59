package subresource

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// places limit how many streams are open, or requests are answered: in all, of each VMI,
// and of each namespace, which has no more than are free. So one namespace takes half of
// them at most, and another always finds some.
type places struct {
	// what is limited, as messages name it.
	what          string
	inAll, perVMI int

	mu    sync.Mutex
	taken int
	open  map[types.NamespacedName]int
	// of are those of a namespace.
	of    map[string]int
	ended bool
	all   sync.WaitGroup
}

func newPlaces(what string, inAll, perVMI int) *places {
	return &places{what: what, inAll: inAll, perVMI: perVMI, open: map[types.NamespacedName]int{}, of: map[string]int{}}
}

// take takes a place, which the returned function gives back.
func (p *places) take(key types.NamespacedName) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended:
		return nil, unavailable("virt-controller ends; try again")
	case p.open[key] >= p.perVMI:
		return nil, tooMany("VMI " + key.String() + " has as many " + p.what + " as it may have; close one")
	case p.of[key.Namespace] > 0 && p.of[key.Namespace] >= p.inAll-p.taken:
		return nil, tooMany("the VMIs of namespace " + key.Namespace + " have as many " + p.what + " as they may have; close one, or try again")
	case p.taken >= p.inAll:
		return nil, tooMany("virt-controller has as many " + p.what + " as it can; try again")
	}
	p.all.Add(1)
	p.taken++
	p.open[key]++
	p.of[key.Namespace]++
	return sync.OnceFunc(func() {
		defer p.all.Done()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.taken--
		if p.open[key]--; p.open[key] == 0 {
			delete(p.open, key)
		}
		if p.of[key.Namespace]--; p.of[key.Namespace] == 0 {
			delete(p.of, key.Namespace)
		}
	}), nil
}

// end refuses further places.
func (p *places) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}
