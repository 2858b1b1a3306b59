package config

import (
	"slices"
	"time"

	"github.com/podvisor/podvisor/vmi"
)

// Updates is how VMIs that run get the launcher of this version. The zero value is: they
// keep theirs.
type Updates struct {
	// Migrate says that those that can move are migrated.
	Migrate bool
	// Evict says that the pods of the others are evicted.
	Evict bool
	// BatchSize is how many pods are evicted in BatchInterval.
	BatchSize     int
	BatchInterval time.Duration
}

// Sizes of batches that are not configured.
const (
	batchSize     = 10
	batchInterval = time.Minute
)

func updates(s *vmi.WorkloadUpdateStrategy) Updates {
	if s == nil {
		return Updates{}
	}
	u := Updates{
		Migrate:   slices.Contains(s.WorkloadUpdateMethods, vmi.WorkloadUpdateLiveMigrate),
		Evict:     slices.Contains(s.WorkloadUpdateMethods, vmi.WorkloadUpdateEvict),
		BatchSize: batchSize, BatchInterval: batchInterval,
	}
	if n := s.BatchEvictionSize; n != nil {
		u.BatchSize = *n
	}
	if d := s.BatchEvictionInterval; d != nil {
		u.BatchInterval = d.Duration
	}
	return u
}
