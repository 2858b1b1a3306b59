package dhcp

import (
	"math/rand/v2"
	"time"
)

// Times of the advertisements (RFC 4861, 6.2.1 and 10). The longest is a fifteenth of
// routerLifetime: a guest that missed many still has its router.
const (
	// mostBetween and leastBetween limit the time between two advertisements.
	mostBetween  = 10 * time.Minute
	leastBetween = mostBetween / 3
	// initialCount advertisements follow each other by initialBetween, for which the RFC
	// permits 16 s. A guest repeats its question after as long.
	initialCount   = 3
	initialBetween = 4 * time.Second
	// apart is the least time between two advertisements for all nodes.
	apart = 3 * time.Second
	// sendAgain is the time after which what could not be sent is sent again.
	sendAgain = 200 * time.Millisecond
)

// schedule says when the router advertises itself to all nodes of the link. The zero value
// does so at once. A guest that asks has just brought up its link, so the initial
// advertisements start anew: one of them stands for an answer that was lost.
type schedule struct {
	last, next time.Time
	// sentInitial is how many of the initial advertisements were sent.
	sentInitial int
}

// sent notes that the advertisement was sent at now.
func (s *schedule) sent(now time.Time) {
	s.last = now
	s.sentInitial++
	between := initialBetween
	if s.sentInitial >= initialCount {
		between = leastBetween + rand.N(mostBetween-leastBetween)
	}
	s.next = now.Add(between)
}

// answered notes that the guest asked at now and was answered by itself.
func (s *schedule) answered(now time.Time) {
	s.sentInitial = 0
	s.within(now.Add(initialBetween))
}

// asked notes that the guest asked at now from no address, so that only an advertisement
// for all nodes answers it. That is sent at once, or as soon as the RFC permits.
func (s *schedule) asked(now time.Time) {
	s.sentInitial = 0
	s.within(now)
}

// failed notes that an advertisement could not be sent at now.
func (s *schedule) failed(now time.Time) { s.next = s.permitted(now.Add(sendAgain)) }

// within has the next advertisement sent at the time, if it is not sent earlier.
func (s *schedule) within(at time.Time) {
	if at = s.permitted(at); at.Before(s.next) {
		s.next = at
	}
}

// permitted is the first time from at on that is not too soon after the last advertisement.
func (s *schedule) permitted(at time.Time) time.Time {
	if earliest := s.last.Add(apart); at.Before(earliest) {
		return earliest
	}
	return at
}
