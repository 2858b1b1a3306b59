package testenv_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
)

func TestProcessorTimeIsThatOfTheFunction(t *testing.T) {
	const worked = 100 * time.Millisecond
	n := 0
	took := testenv.ProcessorTime(t, func() {
		for begun := time.Now(); time.Since(begun) < worked; n++ {
		}
	})
	require.Positive(t, took)
	require.Less(t, testenv.ProcessorTime(t, func() { time.Sleep(worked) }), worked/2, "it waits")

	loops := func(times int) func() {
		return func() {
			for i := range times {
				n += i
			}
		}
	}
	require.Greater(t, testenv.ProcessorTime(t, loops(1<<24)), testenv.ProcessorTime(t, loops(1<<14)))
}
