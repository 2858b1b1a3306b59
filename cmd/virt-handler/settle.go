package main

import (
	"context"
	"time"
)

// settleTimeout is how long migrations have to end after SIGTERM. The grace period of the pod
// is longer.
const settleTimeout = 180 * time.Second

// untilSettled is a context that ends after ctx: when settle has returned, which has a limited
// time.
func untilSettled(ctx context.Context, settle func(context.Context)) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer cancel()
		select {
		case <-out.Done():
			return
		case <-ctx.Done():
			if out.Err() != nil {
				return
			}
		}
		limited, stop := context.WithTimeout(out, settleTimeout)
		defer stop()
		settle(limited)
	}()
	return out, cancel
}
