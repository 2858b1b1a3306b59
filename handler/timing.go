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
	// FindingDelay is how long another fault must last before the VMI's conditions
	// say so. One that is over by the next attempt is not worth a write and an
	// event.
	FindingDelay = time.Second
	// StartDeadline is how long after the phase became Scheduled a VMI fails if
	// its guest was never reported to run.
	StartDeadline = 3 * time.Minute
	// LeastTrial is how long a handler serves a pod before the VMI can fail by
	// StartDeadline, which may be over when the handler starts.
	LeastTrial = 30 * time.Second
	// CountFirst is how long after a report of a guest's reboots or panics the next
	// one is not made, and CountLatest the longest that this becomes for a guest
	// that reboots again and again.
	CountFirst  = 10 * time.Second
	CountLatest = 5 * time.Minute
	// A guest reboots again and again that has rebooted LoopReboots times since it was
	// started, the last times every LoopInterval or more often. An installation reboots
	// two or three times. It does not any more when it has not for LoopOver.
	LoopReboots  = 5
	LoopInterval = 2 * time.Minute
	LoopOver     = 10 * time.Minute
)

// CountInterval is how long after a report of the count a higher one is not
// reported: as many seconds as there were reboots or panics, within limits. Each
// report is a write and an event.
func CountInterval(count int64) time.Duration {
	return min(max(CountFirst, time.Duration(min(count, 1<<31))*time.Second), CountLatest)
}
