package review

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestASourceWaitsForItsTurn(t *testing.T) {
	turns := newTurns(2, 3)
	first, err := turns.take(t.Context(), "a")
	require.NoError(t, err)
	_, err = turns.take(t.Context(), "a")
	require.NoError(t, err)
	order := make(chan string, 2)
	var all sync.WaitGroup
	for n, source := range []string{"a", "b"} {
		all.Go(func() {
			leave, err := turns.take(t.Context(), source)
			if err != nil {
				t.Error(err)
				return
			}
			order <- source
			leave()
		})
		require.Eventually(t, func() bool { turns.mu.Lock(); defer turns.mu.Unlock(); return len(turns.queued) == n+1 }, time.Minute, time.Millisecond)
	}
	_, err = turns.take(t.Context(), "a")
	require.ErrorContains(t, err, "too many tokens of a are reviewed")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = turns.take(ended, "c")
	require.ErrorIs(t, err, context.Canceled)
	first()
	first() // again changes nothing
	all.Wait()
	require.Equal(t, []string{"b", "a"}, []string{<-order, <-order}, "the one without a place is before the one with one")
}

func TestTheSourceWhoseLastTurnIsLongestAgoIsNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(1, 1)
		for _, source := range []string{"b", "a", "c", "d"} {
			leave, err := turns.take(t.Context(), source)
			require.NoError(t, err)
			time.Sleep(time.Second)
			if source != "d" {
				leave()
				continue
			}
			order := make(chan string, 4)
			for _, waits := range []string{"a", "c", "new", "b"} {
				go func() {
					leave, err := turns.take(t.Context(), waits)
					if err != nil {
						t.Error(err)
						return
					}
					order <- waits
					leave()
				}()
			}
			synctest.Wait()
			leave()
			require.Equal(t, []string{"new", "b", "a", "c"}, []string{<-order, <-order, <-order, <-order})
		}
		synctest.Wait()
		require.Empty(t, turns.of)
		for n := range 2 * sourcesKept {
			leave, err := turns.take(t.Context(), fmt.Sprint(n))
			require.NoError(t, err)
			leave()
		}
		require.Equal(t, sourcesKept, turns.left.Len())
	})
}

func TestAQuestionIsAskedOnceForAllWhoWaitForItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue[int](Limits{AtOnce: 2, PerSource: 1, Wait: time.Second})
		asked := 0
		first, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for n := range 5 {
			ctx := t.Context()
			if n == 0 {
				ctx = first
			}
			all.Go(func() {
				got, err := q.Do(ctx, KeyOf("a"), fmt.Sprint(n), func(ctx context.Context) (int, error) {
					asked++
					time.Sleep(time.Minute)
					return 7, ctx.Err()
				})
				if err != nil || got != 7 {
					t.Errorf("%d, %v", got, err)
				}
			})
			synctest.Wait()
		}
		cancel() // the request of the first ends, and the others have their answer
		gone, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		_, err := q.Do(gone, KeyOf("a"), "other", nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 1, q.Len())
		all.Wait()
		require.Equal(t, 1, asked)
		require.Zero(t, q.Len())
		require.Empty(t, q.turns.of)
		require.Zero(t, q.turns.taken)
	})
}

func TestASourceHasNotMoreQuestionsThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue[int](Limits{AtOnce: 2, PerSource: 1, Wait: time.Second})
		lasting := func(context.Context) (int, error) { time.Sleep(time.Minute); return 0, errors.New("away") }
		var all sync.WaitGroup
		for _, s := range []string{"a", "b"} {
			all.Go(func() { _, _ = q.Do(t.Context(), KeyOf(s), s, lasting) })
		}
		synctest.Wait()
		_, err := q.Do(t.Context(), KeyOf("x"), "a", lasting)
		require.ErrorContains(t, err, "too many tokens of a are reviewed")
		began := time.Now()
		_, err = q.Do(t.Context(), KeyOf("y"), "c", lasting)
		require.ErrorContains(t, err, "the tokens of others are reviewed before those of c")
		require.Equal(t, time.Second, time.Since(began))
		all.Wait()
		require.Zero(t, q.Len())
		require.Empty(t, q.turns.of)
	})
}
