// Package expiring is a map for what a process knows for a while: values that count until
// a time, or until they are dropped, and of which there are never too many.
//
// It touches nothing; the time is an argument.
package expiring

import (
	"container/heap"
	"container/list"
	"sync"
	"time"
)

// DefaultMost is how many values a [Map] keeps whose Most is 0.
const DefaultMost = 1 << 16

// Map keeps values by their keys. The zero value is empty. It is safe for concurrent use.
// What is over is never returned, and is dropped when others are put. For n values, each
// method but All takes O(log n).
type Map[K comparable, V any] struct {
	// Most is how many values are kept: for one more, the one that was put first is
	// dropped. 0: [DefaultMost]. It is not changed after the first use.
	Most int

	mu     sync.Mutex
	values map[K]*kept[K, V]
	order  list.List  // all values, in the order in which they were put
	ends   ends[K, V] // those that are over at some time
}

// kept is a value, which counts until a time. Zero: it always does.
type kept[K comparable, V any] struct {
	key   K
	value V
	until time.Time
	put   *list.Element // its place among all
	at    int           // its place among the ends, if it has one
}

func (k *kept[K, V]) over(now time.Time) bool { return !k.until.IsZero() && now.After(k.until) }

// Put keeps the value for so long from now on, in place of the one before. 0: until it is
// dropped.
func (m *Map[K, V]) Put(key K, value V, now time.Time, keep time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(key, value, now, keep)
}

// GetOrPut returns the value of the key, and puts this one before if there is none.
func (m *Map[K, V]) GetOrPut(key K, value V, now time.Time, keep time.Duration) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k, ok := m.values[key]; ok && !k.over(now) {
		return k.value
	}
	m.put(key, value, now, keep)
	return value
}

// Get returns the value of the key. ok is false, and the value zero, if there is none.
func (m *Map[K, V]) Get(key K, now time.Time) (value V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k, ok := m.values[key]; ok && !k.over(now) {
		return k.value, true
	}
	return value, false
}

// All are the values that count now. The caller may change the map.
func (m *Map[K, V]) All(now time.Time) map[K]V {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[K]V, len(m.values))
	for key, k := range m.values {
		if !k.over(now) {
			all[key] = k.value
		}
	}
	return all
}

// Delete drops the value of the key.
func (m *Map[K, V]) Delete(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(m.values[key])
}

// DeleteIf drops the value of the key if drop returns true for it. drop must not use the Map.
func (m *Map[K, V]) DeleteIf(key K, drop func(V) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k, ok := m.values[key]; ok && drop(k.value) {
		m.drop(k)
	}
}

// Len is how many values are kept, with those that are over and not dropped yet.
func (m *Map[K, V]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.values)
}

// put needs the lock.
func (m *Map[K, V]) put(key K, value V, now time.Time, keep time.Duration) {
	if m.values == nil {
		m.values = map[K]*kept[K, V]{}
	}
	m.drop(m.values[key])
	for len(m.ends.of) > 0 && m.ends.of[0].over(now) {
		m.drop(m.ends.of[0])
	}
	if len(m.values) >= m.most() {
		m.drop(m.order.Front().Value.(*kept[K, V]))
	}
	k := &kept[K, V]{key: key, value: value}
	m.values[key], k.put = k, m.order.PushBack(k)
	if keep > 0 {
		k.until = now.Add(keep)
		heap.Push(&m.ends, k)
	}
}

func (m *Map[K, V]) most() int {
	if m.Most == 0 {
		return DefaultMost
	}
	return m.Most
}

// drop drops the value. Nil: there is none. It needs the lock.
func (m *Map[K, V]) drop(k *kept[K, V]) {
	if k == nil {
		return
	}
	delete(m.values, k.key)
	m.order.Remove(k.put)
	if !k.until.IsZero() {
		heap.Remove(&m.ends, k.at)
	}
}

// ends are values that are over at some time, as a heap: the first one is over first.
type ends[K comparable, V any] struct {
	of []*kept[K, V]
	// compared is how often two were compared.
	compared int
}

func (e *ends[K, V]) Len() int { return len(e.of) }

func (e *ends[K, V]) Less(i, j int) bool {
	e.compared++
	return e.of[i].until.Before(e.of[j].until)
}

func (e *ends[K, V]) Swap(i, j int) {
	e.of[i], e.of[j] = e.of[j], e.of[i]
	e.of[i].at, e.of[j].at = i, j
}

func (e *ends[K, V]) Push(k any) {
	v := k.(*kept[K, V])
	v.at = len(e.of)
	e.of = append(e.of, v)
}

func (e *ends[K, V]) Pop() any {
	last := len(e.of) - 1
	k := e.of[last]
	e.of[last] = nil
	e.of = e.of[:last]
	return k
}
