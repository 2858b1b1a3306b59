package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestABudgetIsSharedAmongNamespaces(t *testing.T) {
	t.Parallel()
	// Every two seconds each pod of each namespace tries to be read, in this order.
	tests := []struct {
		name    string
		pods    []string // the namespaces of the pods that wait, from the beginning
		later   []string // those of the pods that wait from the 20th second on
		seconds int
		want    map[string]int // how many reads each namespace has at least after that time
	}{
		{"a namespace alone has all of it", repeat("a", 100), nil, 60, map[string]int{"a": 10 + 60}},
		{"few pods are read at once", repeat("a", 3), nil, 0, map[string]int{"a": 3}},
		{"two namespaces share it, whatever their pods are", append(repeat("a", 300), repeat("b", 50)...), nil, 60, map[string]int{"a": 30, "b": 30}},
		{"a namespace that comes later has its turn after one try", repeat("a", 300), []string{"b"}, 22, map[string]int{"a": 30, "b": 1}},
		{"and several have", repeat("a", 300), []string{"b", "c", "d"}, 24, map[string]int{"a": 28, "b": 1, "c": 1, "d": 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, now := newBudget(1, 10, readWait), time.Unix(1000, 0)
			got := map[string]int{}
			for second := 0; second <= tt.seconds; second += 2 {
				all := tt.pods
				if second >= 20 {
					all = append(append([]string{}, all...), tt.later...)
				}
				// A pod that was read is silent for longer, and those that were refused try
				// again: here the first ones do all the time.
				for _, namespace := range all {
					if b.accept(namespace, now.Add(time.Duration(second)*time.Second)) {
						got[namespace]++
					}
				}
			}
			sum := 0
			for namespace, least := range tt.want {
				require.GreaterOrEqual(t, got[namespace], least, "%s of %v", namespace, got)
				sum += got[namespace]
			}
			require.LessOrEqual(t, sum, 10+tt.seconds)
			require.LessOrEqual(t, b.reads.Len()+b.waiting.Len(), 8)
		})
	}
}

func TestABudgetForgetsNamespacesThatWaitNoMore(t *testing.T) {
	t.Parallel()
	b, now := newBudget(1, 1, readWait), time.Unix(1000, 0)
	require.True(t, b.accept("a", now))
	require.False(t, b.accept("b", now), "it is used up")
	require.False(t, b.accept("a", now.Add(time.Second)), "b is before a")
	require.True(t, b.accept("a", now.Add(7*time.Second)), "b has not come")
	b.accept("a", now.Add(time.Hour))
	require.Equal(t, 1, b.reads.Len())
	require.Empty(t, b.waiting.All(now.Add(time.Hour)))
}

func repeat(s string, n int) []string {
	var out []string
	for range n {
		out = append(out, s)
	}
	return out
}
