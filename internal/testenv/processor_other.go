//go:build !linux

package testenv

import (
	"testing"
	"time"
)

// ProcessorTime is how long the function takes. What a processor works for it is known on
// Linux only.
func ProcessorTime(t testing.TB, f func()) time.Duration {
	t.Helper()
	begun := time.Now()
	f()
	return time.Since(begun)
}
