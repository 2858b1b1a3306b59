// Package expiring is a map for what a process knows for a while: values that count until
// a time, or until they are dropped, and of which there are never too many.
//
// It touches nothing; the time is an argument.
package expiring

import (
	"sync"
	"time"
)

// DefaultMost is how many values a [Map] keeps whose Most is 0.
const DefaultMost = 1 << 16

// Map keeps values by their keys. The zero value is empty. It is safe for concurrent use.
// What is over is never returned, and is dropped when others are put.
type Map[K comparable, V any] struct {
	// Most is how many values are kept: for one more, the one that was put first is
	// dropped. 0: [DefaultMost]. It is not changed after the first use.
	Most int

	mu     sync.Mutex
	values map[K]kept[V]
	sweep  time.Time // when what is over is dropped next
}

// kept is a value that was put at a time, and counts to another. Zero: it always does.
type kept[V any] struct {
	value     V
	at, until time.Time
}

func (k kept[V]) over(now time.Time) bool { return !k.until.IsZero() && now.After(k.until) }

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
	delete(m.values, key)
}

// DeleteIf drops the value of the key if drop returns true for it. drop must not use the Map.
func (m *Map[K, V]) DeleteIf(key K, drop func(V) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k, ok := m.values[key]; ok && drop(k.value) {
		delete(m.values, key)
	}
}

// Len is how many values are kept, with those that are over and not dropped yet.
func (m *Map[K, V]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.values)
}

// put needs the lock. What is over is looked for once in the time that a value is kept, so
// that a value costs little however many there are.
func (m *Map[K, V]) put(key K, value V, now time.Time, keep time.Duration) {
	if m.values == nil {
		m.values = map[K]kept[V]{}
	}
	k := kept[V]{value: value, at: now}
	if keep > 0 {
		k.until = now.Add(keep)
		if now.After(m.sweep) {
			m.dropOver(now)
			m.sweep = k.until
		}
	}
	if _, ok := m.values[key]; !ok && len(m.values) >= m.most() {
		m.makeRoom(now)
	}
	m.values[key] = k
}

func (m *Map[K, V]) most() int {
	if m.Most == 0 {
		return DefaultMost
	}
	return m.Most
}

// dropOver drops what is over. It needs the lock.
func (m *Map[K, V]) dropOver(now time.Time) {
	for key, k := range m.values {
		if k.over(now) {
			delete(m.values, key)
		}
	}
}

// makeRoom drops what is over, and if that is nothing, what was put first. It needs the lock.
func (m *Map[K, V]) makeRoom(now time.Time) {
	if m.dropOver(now); len(m.values) < m.most() {
		return
	}
	var first K
	var at time.Time
	for key, k := range m.values {
		if at.IsZero() || k.at.Before(at) {
			first, at = key, k.at
		}
	}
	delete(m.values, first)
}
