package live

import "context"

// Alone returns a function that runs f as long as KubeVirt itself is not
// installed: f begins when that is known, its context ends when KubeVirt comes,
// and it begins again when KubeVirt is gone. The function returns when f returns
// for another reason, or ctx ends.
func (w *Watcher) Alone(f func(context.Context) error) func(context.Context) error {
	changed := make(chan struct{}, 1)
	w.OnChange(func() {
		select {
		case changed <- struct{}{}:
		default: // one that is not yet seen says the same
		}
	})
	return func(ctx context.Context) error {
		if !w.Wait(ctx) {
			return nil // ctx has ended
		}
		for {
			if w.OtherInstallation() == "" {
				if over, err := w.until(ctx, changed, f); over || err != nil {
					return err
				}
			}
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
			}
		}
	}
}

// until runs f until KubeVirt is installed. It is over if f ended before.
func (w *Watcher) until(ctx context.Context, changed <-chan struct{}, f func(context.Context) error) (over bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	for {
		select {
		case err := <-done:
			return true, err
		case <-changed:
			if w.OtherInstallation() != "" {
				cancel()
				return false, <-done
			}
		}
	}
}
