package controller

import (
	"slices"

	"github.com/podvisor/podvisor/vmi"
)

// wrote notes the VMI as a write of its status returned it, and the
// resourceVersion of the one that the write was made from.
func (s *session) wrote(base string, v *vmi.VirtualMachineInstance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bases, s.written = append(s.bases, base), v
}

// newest returns the cached VMI, or what was last written as long as the cache is
// behind that. It closes this race: the launcher reports a change before the cache
// has our own write, and a write from the cached VMI would be a conflict.
func (s *session) newest(cached *vmi.VirtualMachineInstance) *vmi.VirtualMachineInstance {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.written == nil || cached == nil || cached.UID != s.written.UID || !slices.Contains(s.bases, cached.ResourceVersion) {
		s.written, s.bases = nil, nil // the cache has caught up
		return cached
	}
	return s.written
}
