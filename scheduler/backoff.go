package scheduler

import "time"

// Times between a failed start and the next.
const (
	backOffStep = 10 * time.Second
	mostBackOff = 5 * time.Minute
)

// BackOff is the time between the nth failed start in a row and the next: 10 s, 40 s,
// 90 s and so on, and up to half as much more by jitter, which is from 0 to 1. It is
// at most 5 minutes.
func BackOff(n int, jitter float64) time.Duration {
	const most = int(mostBackOff / backOffStep) // beyond it, n² overflows at some time
	n = max(0, min(n, most))
	d := backOffStep * time.Duration(n*n)
	d += time.Duration(jitter * float64(d) / 2)
	return min(d, mostBackOff)
}
