package reconcile

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestANamespaceWithManyKeysDoesNotDelayAnother(t *testing.T) {
	t.Parallel()
	f := newFair()
	for i := range 100 {
		f.Push(fmt.Sprintf("a/%d", i))
	}
	f.Push("b/0")
	f.Push("node")
	f.Push("b/1")
	require.Equal(t, 103, f.Len())
	var first []string
	for range 6 {
		first = append(first, f.Pop())
	}
	require.Equal(t, []string{"a/0", "b/0", "node", "a/1", "b/1", "a/2"}, first)
	for f.Len() > 0 {
		first = append(first, f.Pop())
	}
	require.Len(t, first, 103)
	require.Empty(t, f.keys)
	require.Empty(t, f.turns)
}

func TestALoopTakesNamespacesInTurn(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var done []string
	l := New(Config{Name: "test", Workers: 1, Do: func(_ context.Context, key string) (time.Duration, error) {
		mu.Lock()
		defer mu.Unlock()
		done = append(done, key)
		return 0, nil
	}})
	for i := range 1000 {
		l.Add(fmt.Sprintf("a/%d", i))
	}
	l.Add("b/0")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { l.Run(ctx) })
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(done) == 1001
	}, time.Minute, time.Millisecond)
	cancel()
	wg.Wait()
	require.Equal(t, "b/0", done[1])
}
