package subresource

import "sync"

// places limit how many streams are open, in all and of each key.
type places struct {
	inAll, perKey int

	mu    sync.Mutex
	taken int
	open  map[string]int
	ended bool
	all   sync.WaitGroup
}

// take takes a place, which the returned function gives back.
func (p *places) take(key string) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended:
		return nil, unavailable("virt-controller ends; try again")
	case p.open[key] >= p.perKey:
		return nil, tooMany("VMI " + key + " has as many open streams as it may have; close one")
	case p.taken >= p.inAll:
		return nil, tooMany("virt-controller has as many open streams as it can; try again")
	}
	p.all.Add(1)
	p.taken++
	p.open[key]++
	return sync.OnceFunc(func() {
		defer p.all.Done()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.taken--
		if p.open[key]--; p.open[key] == 0 {
			delete(p.open, key)
		}
	}), nil
}

// end refuses further places.
func (p *places) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}
