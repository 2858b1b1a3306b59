package handler

import "time"

// The times of a session with a launcher.
const (
	// HeartbeatPeriod is the time between two checks of a launcher whose stream of
	// states is open.
	HeartbeatPeriod = 10 * time.Second
	// AnswerTimeout is how long a launcher may take to answer a request.
	AnswerTimeout = 5 * time.Second
	// SilenceDelay is how long a launcher may not answer before the VMI's
	// conditions say so. It is longer than AnswerTimeout, so that the cause is
	// known then.
	SilenceDelay = AnswerTimeout + time.Second
	// findingDelay is how long another fault must last before the VMI's conditions
	// say so. One that is over by the next attempt is not worth a write and an
	// event.
	findingDelay = time.Second
	// outcomeDelay is how long everything of a guest may be at the target before the VMI's
	// conditions say that nothing is known of it.
	outcomeDelay = 5 * time.Second
	// StartDeadline is how long after the phase became Scheduled a VMI fails if
	// its guest was never reported to run.
	StartDeadline = 3 * time.Minute
	// leastTrial is how long a handler serves a pod before the VMI can fail by
	// StartDeadline, which may be over when the handler starts.
	leastTrial = 30 * time.Second
	// countFirst is how long after a report of a guest's reboots or panics the next
	// one is not made, and countLatest the longest that this becomes for a guest
	// that reboots again and again.
	countFirst  = 10 * time.Second
	countLatest = 5 * time.Minute
	// A guest reboots again and again that has rebooted loopReboots times since it was
	// started, the last times every loopInterval or more often. An installation reboots
	// two or three times. It does not any more when it has not for loopOver.
	loopReboots  = 5
	loopInterval = 2 * time.Minute
	loopOver     = 10 * time.Minute
)

// countInterval is how long after a report of the count a higher one is not
// reported: as many seconds as there were reboots or panics, within limits. Each
// report is a write and an event.
func countInterval(count int64) time.Duration {
	return min(max(countFirst, time.Duration(min(count, 1<<31))*time.Second), countLatest)
}
