package reconcile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
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
// was made, and what was logged at the level Info and above.
func run(t *testing.T, do func(call int) (time.Duration, error)) (calls []time.Duration, logged string) {
	t.Helper()
	var log bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		l := New(Config{Name: "test", Logger: slog.New(slog.NewTextHandler(&log, nil)), Do: func(context.Context, string) (time.Duration, error) {
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
	return calls, log.String()
}

func TestALoop(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	conflict, missing := apierrors.NewConflict(pods, "b", nil), apierrors.NewNotFound(pods, "b")
	once := func(err error) func(int) (time.Duration, error) {
		return func(call int) (time.Duration, error) {
			if call == 1 {
				return 0, err
			}
			return 0, nil
		}
	}
	for name, tt := range map[string]struct {
		do     func(call int) (time.Duration, error)
		calls  int
		logged string
	}{
		"a key without an error is handled once":          {once(nil), 1, ""},
		"a conflict is retried and not logged":            {once(fmt.Errorf("write: %w", conflict)), 2, ""},
		"conflicts that are joined are a conflict":        {once(errors.Join(conflict, conflict)), 2, ""},
		"an error that is joined to a conflict is logged": {once(errors.Join(errors.New("no route"), conflict)), 2, "no route"},
		"a NotFound is retried and logged":                {once(fmt.Errorf("write: %w", missing)), 2, "not found"},
		"an error is retried and logged":                  {once(errors.New("no route")), 2, "no route"},
		"a panic is retried and logged with its stack":    {func(call int) (time.Duration, error) { return crash(call) }, 2, "reconcile.crash"},
		"an invalid object is logged and not retried":     {once(fmt.Errorf("render: %w", vmi.ErrInvalid)), 1, "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			calls, logged := run(t, tt.do)
			require.Len(t, calls, tt.calls)
			if tt.logged == "" {
				require.Empty(t, logged)
			} else {
				require.Contains(t, logged, tt.logged)
				require.Contains(t, logged, "key=a/b")
			}
		})
	}
}

func crash(call int) (time.Duration, error) {
	if call == 1 {
		panic("index out of range")
	}
	return 0, nil
}

func TestAKeyIsHandledAgainAfterTheTimeThatItAsksFor(t *testing.T) {
	calls, _ := run(t, func(call int) (time.Duration, error) {
		if call == 1 {
			return time.Minute, nil
		}
		return 0, nil
	})
	require.Equal(t, []time.Duration{0, time.Minute}, calls)
}

func TestDelaysGrow(t *testing.T) {
	calls, _ := run(t, func(call int) (time.Duration, error) {
		if call < 4 {
			return 0, errors.New("no route")
		}
		return 0, nil
	})
	require.Len(t, calls, 4)
	require.Greater(t, calls[3]-calls[2], calls[2]-calls[1])
}
