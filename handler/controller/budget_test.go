package controller

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

// spends is how many requests a namespace with so many VMIs sends in d, if each of
// them has something else to write all the time.
func spends(vmis int, d time.Duration) (first, later int) {
	var b budgets
	start := time.Unix(0, 0)
	again := make([]time.Time, vmis) // when each tries next: one that is refused, when its wait is over
	for now := start; now.Sub(start) < 2*d; now = now.Add(500 * time.Millisecond) {
		for i := range vmis {
			if now.Before(again[i]) {
				continue
			}
			if wait := b.spend(fmt.Sprintf("ns/%d", i), "", false, 1, now); wait > 0 {
				again[i] = now.Add(wait)
				continue
			}
			if now.Sub(start) < d {
				first += 2
			} else {
				later += 2
			}
		}
	}
	return first, later
}

func TestTheVMIsOfANamespaceShareWhatTheyWrite(t *testing.T) {
	t.Parallel()
	for vmis, want := range map[int]float64{1: 0.1, 4: 0.4, 16: 0.5, 64: 0.5, 250: 0.5} {
		first, later := spends(vmis, time.Hour)
		rate := float64(later) / time.Hour.Seconds()
		require.InDelta(t, want, rate, 0.1, "%d VMIs", vmis)
		require.LessOrEqual(t, float64(first), want*3700+float64(max(namespaceAtOnce, vmis*leastAtOnce)), "%d VMIs", vmis)
	}
}

func TestTheBudgetOfAVMI(t *testing.T) {
	t.Parallel()
	var b budgets
	now := time.Unix(0, 0)
	for i := range requestsAtOnce {
		require.Zero(t, b.spend("a/vm", "1", false, 0, now), i)
	}
	require.Equal(t, requestInterval, b.spend("a/vm", "1", false, 0, now), "and then one in each interval")
	require.Equal(t, requestInterval, b.spend("a/vm", "1", false, 0, now), "what waits spends nothing")
	require.Zero(t, b.spend("a/vm", "1", true, 0, now), "a phase does not wait")
	require.Zero(t, b.spend("b/vm", "2", false, 3, now), "another namespace has its own")
	require.Zero(t, b.spend("a/other", "3", false, 9, now), "and so has another VMI")
	require.Zero(t, b.spend("a/vm", types.UID("4"), false, 0, now), "also one of the same name")
	require.Equal(t, map[string]int{"a": 2, "b": 1}, b.count)
	for _, key := range []string{"a/vm", "a/vm", "a/other", "b/vm"} {
		b.drop(key)
	}
	require.Empty(t, b.of)
	require.Empty(t, b.count)
}

func TestTheLinesOfASessionAreLimited(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := limitedLog(slog.New(slog.NewTextHandler(&out, nil))).With("vmi", "a/vm").WithGroup("g")
	for range 3 * linesAtOnce {
		l.Info("retry", "err", "x")
	}
	require.Equal(t, linesAtOnce, strings.Count(out.String(), "\n"))
	h := l.Handler().(*limitedLines)
	require.EqualValues(t, 2*linesAtOnce, h.dropped.Load())
	h.limiter.SetBurst(linesAtOnce + 1)
	h.limiter.SetLimit(1e9)
	require.Eventually(t, func() bool { return h.limiter.Tokens() >= 1 }, time.Minute, time.Millisecond)
	l.Info("retry", "err", "x")
	require.Contains(t, out.String(), fmt.Sprintf("g.droppedLines=%d", 2*linesAtOnce))
}
