package ops

import (
	"context"
	"errors"
	"sync"
)

// All says why one of the checks fails, if one does.
func All(checks ...func() error) func() error {
	return func() error {
		var faults []error
		for _, check := range checks {
			if check != nil {
				faults = append(faults, check())
			}
		}
		return errors.Join(faults...)
	}
}

// Together runs all of them at the same time. When one returns, for whatever
// reason, the context of the others ends; Together returns when all have, with
// all their errors.
func Together(ctx context.Context, all ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, f := range all {
		wg.Go(func() {
			defer cancel()
			errs[i] = f(ctx)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
