package dhcp

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// after is the time so many seconds after the router began.
func after(seconds float64) time.Time {
	return began.Add(time.Duration(seconds * float64(time.Second)))
}

func TestTheFirstAdvertisementsFollowEachOtherClosely(t *testing.T) {
	t.Parallel()
	var s schedule
	require.True(t, began.After(s.next), "the first is sent at once")
	for n := range 100 {
		now := s.next
		if n == 0 {
			now = began
		}
		s.sent(now)
		between := s.next.Sub(now)
		if n < initialCount-1 {
			require.Equal(t, initialBetween, between)
			continue
		}
		require.GreaterOrEqual(t, between, leastBetween)
		require.Less(t, between, mostBetween)
		require.Less(t, 10*between, routerLifetime, "a guest that missed some still has its router")
	}
}

// steady is the schedule of a router whose initial advertisements are over, the last of
// them at began.
func steady() schedule {
	s := schedule{sentInitial: initialCount}
	s.sent(began)
	return s
}

func TestAnAnswerIsRepeatedByTheFirstAdvertisementsAnew(t *testing.T) {
	t.Parallel()
	s := steady()
	s.answered(after(60))
	require.Equal(t, after(64), s.next)
	s.answered(after(63))
	require.Equal(t, after(64), s.next, "a guest that asks again and again does not put it off")
	s.sent(after(64))
	require.Equal(t, after(68), s.next)
}

func TestAGuestWithoutAnAddressIsAnsweredAsSoonAsIsPermitted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		asks, sent float64
	}{
		{"long after the last advertisement", 60, 60},
		{"as long after it as is permitted", 3, 3},
		{"soon after it", 1, 3},
	} {
		s := steady()
		s.asked(after(tt.asks))
		require.Equal(t, after(tt.sent), s.next, tt.name)
		s.asked(after(tt.asks + 0.1))
		require.Equal(t, after(tt.sent), s.next, "%s: a guest that asks again does not put it off", tt.name)
	}
}

func TestWhatCouldNotBeSentIsSentAgain(t *testing.T) {
	t.Parallel()
	r := server6{offer: offer6, resolver: resolver, log: discard, times: steady()}
	r.advertise(down{}, after(60))
	require.Equal(t, after(60.2), r.times.next)
	var out sent
	r.advertise(&out, after(60.2))
	require.Len(t, out, 1)

	r.times = steady()
	r.answer(down{}, solicitation(guest6.String()), after(60))
	require.Equal(t, after(60.2), r.times.next)
	r.times = steady()
	r.answer(down{}, solicitation("::"), after(60))
	require.Equal(t, after(60), r.times.next)
	r.advertise(down{}, after(60))
	require.Equal(t, after(60.2), r.times.next)
}

// down is a tap device that is down.
type down struct{}

func (down) Write([]byte) (int, error) { return 0, unix.EIO }

func TestAnErrorOfAnAnswerIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := server6{offer: offer6, resolver: resolver, log: slog.New(slog.NewTextHandler(&out, nil))}
	for range 3 {
		r.advertise(down{}, began)
	}
	require.Equal(t, 1, bytes.Count(out.Bytes(), []byte("input/output error")), out.String())
}
