package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/podvisor/podvisor/vmi"
)

// run runs a loop for an hour of virtual time and returns when each call of do
// was made.
func run(t *testing.T, do func(call int) (time.Duration, error)) (calls []time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		l := New(Config{Name: "test", Do: func(context.Context, string) (time.Duration, error) {
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, time.Since(start))
			return do(len(calls))
		}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		l.Add("a/b")
		l.Run(ctx)
	})
	return calls
}

func TestAKeyIsHandledOnceIfAllIsWell(t *testing.T) {
	require.Len(t, run(t, func(int) (time.Duration, error) { return 0, nil }), 1)
}

func TestAKeyComesBackWhenItAsksTo(t *testing.T) {
	calls := run(t, func(call int) (time.Duration, error) {
		if call == 1 {
			return time.Minute, nil
		}
		return 0, nil
	})
	require.Equal(t, []time.Duration{0, time.Minute}, calls)
}

func TestAnErrorIsTriedAgainWithGrowingDelays(t *testing.T) {
	calls := run(t, func(call int) (time.Duration, error) {
		if call < 4 {
			return 0, errors.New("out of luck")
		}
		return 0, nil
	})
	require.Len(t, calls, 4)
	require.Greater(t, calls[3]-calls[2], calls[2]-calls[1])
}

func TestAConflictIsTriedAgain(t *testing.T) {
	calls := run(t, func(call int) (time.Duration, error) {
		if call == 1 {
			return 0, apierrors.NewConflict(schema.GroupResource{}, "b", nil)
		}
		return 0, nil
	})
	require.Len(t, calls, 2)
}

func TestAWrongWishIsNotTriedAgain(t *testing.T) {
	calls := run(t, func(int) (time.Duration, error) { return 0, fmt.Errorf("render: %w", vmi.ErrInvalid) })
	require.Len(t, calls, 1)
}
