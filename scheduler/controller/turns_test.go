package controller

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

// quota is an API server that accepts so many pods, and the objects that try.
type quota struct {
	*turns
	room     int
	tries    int
	accepted map[string]time.Duration
	began    time.Time
	queued   chan string
}

func newQuota(room int) *quota {
	q := &quota{room: room, accepted: map[string]time.Duration{}, began: time.Now(), queued: make(chan string, 10000)}
	q.turns = newTurns(func(key string) { q.queued <- key }, time.Now)
	return q
}

// run tries whatever is queued until the time is over.
func (q *quota) run(d time.Duration) {
	end := time.After(d)
	for {
		select {
		case key := <-q.queued:
			q.try(key)
		case <-end:
			return
		}
	}
}

func (q *quota) try(key string) {
	if q.waiting(key) {
		return
	}
	q.tries++
	if q.room == 0 || space(key) == "full" {
		q.refused(key, vmi.Finding{Reason: "FailedCreate", Message: fmt.Sprint("exceeded quota: ", q.tries)})
		return
	}
	q.room--
	q.accepted[key] = time.Since(q.began)
	q.turns.accepted(key)
}

// isEmpty is that nothing is known of any object.
func (q *quota) isEmpty(t *testing.T) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	require.Empty(t, q.spaces)
	require.Empty(t, q.said)
}

func TestManyThatWaitCostFewTriesAndAllFollowWhenThereIsRoom(t *testing.T) {
	for _, n := range []int{1, 50, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQuota(0)
				defer q.stop()
				for i := range n {
					q.queued <- fmt.Sprintf("default/%d", i)
				}
				q.run(time.Minute)
				most := min(max(1, n/turnShare), maxTurns)
				require.LessOrEqual(t, q.tries, n+most*60*4/(3*2), "each once, and %d in two seconds", most)
				require.GreaterOrEqual(t, q.tries, n+most*30, "they are tried again")
				q.room, q.began = n+1, time.Now()
				q.run(5 * time.Second)
				require.Len(t, q.accepted, n)
				for key, at := range q.accepted {
					require.LessOrEqual(t, at, turnPeriod, key)
				}
				require.False(t, q.waiting("default/0"))
				q.run(time.Minute)
				q.isEmpty(t)
			})
		})
	}
}

func TestEachThatWaitsHasItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(0)
		defer q.stop()
		for i := range 20 {
			q.queued <- fmt.Sprintf("default/%d", i)
		}
		q.run(time.Second)
		q.room = 1
		q.run(2 * time.Second)
		require.Len(t, q.accepted, 1, "one that had room left")
		q.room = 1
		q.run(2 * time.Second)
		require.Len(t, q.accepted, 2)
	})
}

func TestNamespacesDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(0)
		defer q.stop()
		for i := range 1000 {
			q.queued <- fmt.Sprintf("full/%d", i)
		}
		q.queued <- "other/vm"
		q.run(time.Millisecond)
		q.room = 1
		q.run(turnPeriod)
		require.Contains(t, q.accepted, "other/vm")
	})
}

func TestAnObjectThatIsGoneHasNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(0)
		defer q.stop()
		q.queued <- "default/vm"
		q.run(time.Millisecond)
		require.True(t, q.waiting("default/vm"))
		q.forget("default/vm")
		require.False(t, q.waiting("default/vm"))
		q.run(time.Minute)
		require.Equal(t, 1, q.tries)
		q.isEmpty(t)
	})
}

func TestTheMessageOfARefusalIsReplacedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTurns(func(string) {}, time.Now)
		defer q.stop()
		first, second := vmi.Finding{Reason: "FailedCreate", Message: "used 1"}, vmi.Finding{Reason: "FailedCreate", Message: "used 2"}
		require.Equal(t, first, q.refused("default/vm", first))
		require.Equal(t, first, q.refused("default/vm", second))
		time.Sleep(refusalPeriod)
		require.Equal(t, second, q.refused("default/vm", second))
	})
}
