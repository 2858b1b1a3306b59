package ops

import (
	"context"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/flowcontrol"
)

// Limiter limits the requests of API clients, as many at once and then so many
// per second as was set last. It may be set at any time.
type Limiter struct{ *rate.Limiter }

var _ flowcontrol.RateLimiter = (*Limiter)(nil)

// NewLimiter makes a Limiter with the usual limits.
func NewLimiter() *Limiter {
	return &Limiter{rate.NewLimiter(requestsPerSecond, requestsBurst)}
}

// Set changes the limits. 0: the usual one.
func (l *Limiter) Set(qps float32, burst int) {
	if qps == 0 {
		qps, burst = requestsPerSecond, requestsBurst
	}
	l.SetLimit(rate.Limit(qps))
	l.SetBurst(burst)
}

// TryAccept says whether a request may be sent now.
func (l *Limiter) TryAccept() bool { return l.Allow() }

// Accept waits until a request may be sent.
func (l *Limiter) Accept() { _ = l.Wait(context.Background()) }

// QPS is the number of requests per second.
func (l *Limiter) QPS() float32 { return float32(l.Limit()) }

// Stop does nothing: the limiter holds nothing.
func (l *Limiter) Stop() {}
