package testenv

import "time"

// Pause is how long a test waits before it asks once more for something that it has waited for
// since began: least at first, later a thirtieth of the time so far, and at most ten times least.
// What tests ask of a busy API server all the time is most of what it does.
func Pause(began time.Time, least time.Duration) time.Duration {
	return max(least, min(time.Since(began)/30, 10*least))
}
